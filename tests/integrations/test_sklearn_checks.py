"""scikit-learn's own checks of GapClassifier."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from classgap.integrations.sklearn import GapClassifier

LINEAR = [GapClassifier("mr2"), GapClassifier("logit-adjustment")]
ADAM = [GapClassifier("mr2", model="mlp", hidden_layer_sizes=(32,), max_iter=30, learning_rate_init=0.02)]
# scikit-learn excuses SGDClassifier for the same reason.
STOCHASTIC = {
    "check_sample_weight_equivalence_on_dense_data": "mini-batches with repeated samples differ from weighted ones"
}


@parametrize_with_checks(LINEAR)
def test_linear(estimator, check):
    check(estimator)


@parametrize_with_checks(ADAM, expected_failed_checks=lambda _: STOCHASTIC)
def test_mini_batches(estimator, check):
    check(estimator)
