"""The picture of a membership audit: how well members are found, against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.errors import UsageError
from sottovoce.plotting import COLOURS, label, lines, new_figure
from sottovoce.privacy.membership.report import MembershipReport, Outcome, Shadows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES: dict[Shadows, str] = {
    "obfuscated": "auditor knows the mechanism",
    "clean": "auditor learnt from clean text",
}


def auc_figure(report: MembershipReport) -> Figure:
    """AUC against epsilon with its intervals, the clean text's AUC, and chance."""
    figure, (plot,) = new_figure()
    curves, bands = {}, {}
    for shadows, name in _NAMES.items():
        points = _by_epsilon(report, shadows)
        epsilons = [o.setting.epsilon for o in points]
        curves[name] = (epsilons, [o.auc for o in points])
        bands[name] = tuple(zip(*(o.auc_interval for o in points), strict=True))
    plot.axhline(
        report.clean.auc, color=COLOURS[2], linestyle="--", linewidth=1, label="clean text"
    )
    plot.axhline(0.5, color="#888888", linestyle=":", linewidth=1, label="chance")
    lines(plot, curves, bands=bands)  # type: ignore[arg-type]
    plot.set_ylim(-0.02, 1.02)
    label(plot, x="epsilon", y="AUC, members against non-members", legend=True)
    return figure


def _by_epsilon(report: MembershipReport, shadows: Shadows) -> list[Outcome]:
    found = [each for each in report.outcomes[1:] if each.setting.shadows == shadows]
    if not found or any(each.setting.epsilon is None for each in found):
        raise UsageError("a figure shows AUC against epsilon: audit mechanisms that have one")
    return sorted(found, key=lambda each: each.setting.epsilon or 0.0)
