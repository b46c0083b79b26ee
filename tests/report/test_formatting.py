from hypothesis import given
from hypothesis import strategies as st

from classgap.report.formatting import display_width, truncate


@given(st.text(max_size=40), st.integers(1, 20))
def test_truncated_text_fits(text: str, width: int):
    short = truncate(text, width)
    assert display_width(short) <= width
    assert (short == text) == (display_width(text) <= width) or short == text
    assert short == text or short.endswith("…")
