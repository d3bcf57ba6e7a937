"""Names that are not wanted in the log: which are masked, and what stays comparable."""

import pytest

from evsched.agents.kubernetes.masking import MASKED, Masking, MaskingRules
from evsched.agents.kubernetes.pods import pod_of
from evsched.agents.kubernetes.reading import Reading
from tests.kubernetes.objects import pod, pod_json

RULES = MaskingRules(key="k", namespaces=("secret-*",), users=("eve",), labels=("corp/*",))
MASKING = Masking(RULES)


def test_without_rules_every_name_stays():
    """No rules: nothing is masked."""
    nothing = Masking()
    assert nothing.object("a", "b") == "a/b"
    assert nothing.label("corp/team", "red") == ("corp/team", "red")


def test_a_masked_name_is_the_same_each_time_and_another_under_another_key():
    """Equal names stay equal, and whoever lacks the key cannot compute them."""
    once, again = MASKING.namespace("secret-1"), Masking(RULES).namespace("secret-1")
    other = Masking(MaskingRules(key="other", namespaces=("*",))).namespace("secret-1")
    assert once == again != other
    assert once.startswith(MASKED)
    assert "secret" not in once


def test_the_name_of_a_pod_goes_with_its_namespace():
    """A pod of a masked namespace has a masked name; one of another namespace keeps its own."""
    assert "payroll" not in MASKING.object("secret-1", "payroll")
    assert MASKING.object("open", "payroll") == "open/payroll"


def test_a_masked_selector_matches_the_masked_label():
    """Key and value are masked alike wherever they stand, so matching stays what it was."""
    key, value = MASKING.label("corp/team", "red")
    assert MASKING.values("corp/team", ("red", "blue"))[0] == key
    assert value in MASKING.values("corp/team", ("red", "blue"))[1]
    assert value != MASKING.label("corp/team", "blue")[1]
    assert MASKING.label("app", "web") == ("app", "web")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (MaskingRules(namespaces=("*",)), "key: missing"),
        (MaskingRules(key="x" * 65), "key: 65 bytes"),
    ],
)
def test_rules_that_cannot_hold_are_refused(rules, message):
    """Masking without a key, or with one that is too long, is no masking."""
    with pytest.raises(ValueError, match=message):
        Masking(rules)


def test_nothing_of_a_masked_pod_is_left_in_its_proposals():
    """Neither the namespace, the name, the user nor the labels of a masked pod are in its ask or application."""
    document = pod_json("payroll-0", {"nodeSelector": {"corp/zone": "red"}})
    document["metadata"] |= {
        "namespace": "secret-1",
        "uid": "0815",
        "labels": {"corp/team": "violet", "yunikorn.apache.org/username": "eve"},
    }
    seen = pod_of(pod(document), Reading(masking=MASKING))
    said = f"{seen.ask} {seen.application}"
    for word in ("secret-1", "payroll", "violet", "corp/team", "corp/zone", "eve"):
        assert word not in said
    assert seen.ask.user == MASKING.user("eve") != "eve"
