"""WARC dates: the forms of WARC 1.1 (section 5.4), and what is none."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.page import microseconds, moment_of, text_order


def moment(text: str) -> int:
    """By Python's own reader."""
    return round(datetime.datetime.fromisoformat(text + "+00:00").timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("date", "same"),
    [
        ("2019", "2019-01-01T00:00:00"),
        ("2019-04", "2019-04-01T00:00:00"),
        ("2019-04-18", "2019-04-18T00:00:00"),
        ("2019-04-18T10:12Z", "2019-04-18T10:12:00"),
        ("2019-04-18T10:12:43Z", "2019-04-18T10:12:43"),
        ("2019-04-18T10:12:43.5Z", "2019-04-18T10:12:43.500000"),
        ("2019-04-18T10:12:43.000001Z", "2019-04-18T10:12:43.000001"),
        ("2019-04-18T10:12:43.123456789Z", "2019-04-18T10:12:43.123456"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00"),
        ("2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.250000"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59"),
        ("2020-02-29", "2020-02-29T00:00:00"),
    ],
)
def test_a_date_is_a_moment(date: str, same: str) -> None:
    assert microseconds(date) == moment(same)


@pytest.mark.parametrize(
    "date",
    [
        *("", "19", "2019-", "2019-4", "2019-13", "2019-02-29", "2019-02-30T00:00:00Z", "0000", "0000-01-01"),
        *("2019Z", "2019-04-18Z", "2019-04-18T", "2019-04-18T10Z", "2019-04-18T10:12", "2019-04-18T10:12:43"),
        *("2019-04-18T24:00:00Z", "2019-04-18T10:60:00Z", "2019-04-18T10:12:61Z", "2019-04-18T10:12:43.Z"),
        *("2019-04-18 10:12:43Z", "2019-04-18t10:12:43z", "2019-04-18T10:12:43+00:00", "20190418101243", "yesterday"),
        *("２０１９", " 2019", "2019\n"),
    ],
)
def test_what_is_no_date(date: str) -> None:
    assert microseconds(date) is None


@given(
    st.datetimes(datetime.datetime(1000, 1, 2), datetime.datetime(9999, 12, 30)),
    st.integers(-1439, 1439),
    st.sampled_from(["%Y-%m-%dT%H:%M:%S.%f%z", "%Y%m%dT%H%M%S,%f%z", "%Y-%m-%d %H:%M:%S.%f %z"]),
    st.booleans(),
)
def test_a_date_with_an_offset_is_its_moment(when: datetime.datetime, offset: int, form: str, has_colon: bool) -> None:
    text = when.replace(tzinfo=datetime.timezone(datetime.timedelta(minutes=offset))).strftime(form)
    text = f"{text[:-2]}:{text[-2:]}" if has_colon else text
    utc = when - datetime.timedelta(minutes=offset)
    assert moment_of(text) == microseconds(utc.isoformat(timespec="microseconds") + "Z")


@given(st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)))
def test_any_moment(when: datetime.datetime) -> None:
    text = when.isoformat(timespec="microseconds")
    assert microseconds(text + "Z") == (when - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    assert microseconds(text[:4]) == microseconds(text[:7].replace(text[4:7], "-01"))


FORMS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ")
near = st.datetimes(datetime.datetime(2019, 4, 18), datetime.datetime(2019, 4, 18, 0, 3)).map(
    lambda each: each.replace(microsecond=0)
)
dates = st.builds(lambda when, form: when.strftime(form), near, st.sampled_from(FORMS))


@given(dates, dates)
def test_dates_sort_as_their_texts(one: str, other: str) -> None:
    """In TensorFlow Datasets, the newest capture is the one with the greatest text."""
    first, second = text_order(one), text_order(other)
    assert first is not None
    assert second is not None
    assert first <= second if one < other else first >= second
    assert (first == microseconds(one)) or len(one) == len("2019-04-18T10:12Z")


@pytest.mark.parametrize(
    "texts",
    [
        ["", "-", "2019", "2019-04-18T10:12:43Z", "yesterday"],
        ["2019-04-18T10:12:42Z", "2019-04-18T10:12:43.25Z", "2019-04-18T10:12:43.5Z", "2019-04-18T10:12:43Z"],
        ["2019-04-18T10:12:59Z", "2019-04-18T10:12Z", "2019-04-18T10:13:00Z"],
        ["2019-04-17T23:59:59Z", "2019-04-18 10:12:43", "2019-04-18T10:12:43Z"],
    ],
)
def test_other_timestamps_sort_as_texts_too(texts: list[str]) -> None:
    assert texts == sorted(texts)
    numbers = [text_order(text) for text in texts if text]
    assert numbers == sorted(set(numbers), key=lambda number: number or 0)
    assert text_order("") is None
