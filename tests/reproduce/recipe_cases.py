"""A small recipe: two methods on two moons, two seeds."""

from classgap.reproduce.cells import Plan, make_plan
from classgap.reproduce.schema import Recipe

MOONS = {
    "name": "moons",
    "paper": "elm",
    "item": "Table 9",
    "title": "Two <moons>",
    "base": "elm-moons",
    "settings": {"data": "two-moons:n_train=200:n_test=200", "epochs": 3},
    "parts": {
        "a": {
            "shows": "Two moons | rare",
            "rows": {"CE": {"method": "erm"}, "LA": {"method": "logit-adjustment"}},
            "columns": {"overall": {"metric": "accuracy"}, "balanced": {"metric": "balanced"}},
            "values": {"CE": [90.0, 60.0], "LA": [89.0, 80]},
            "baseline": {"settings": {"method": "erm"}, "row": "CE"},
        }
    },
}


def moons_plan(seeds: int = 2) -> Plan:
    return make_plan(Recipe.model_validate(MOONS), "full", seeds)
