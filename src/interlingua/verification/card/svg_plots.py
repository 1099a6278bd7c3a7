"""Plots as inline SVG. Colours come from CSS classes, so that they follow the theme of the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from interlingua.verification.card.card import LatencyCurve
from interlingua.verification.card.formats import format_seconds
from interlingua.verification.card.html_elements import Html, element, join
from interlingua.verification.run.metrics import Rate

__all__ = ["cause_bar", "interval_plot", "latency_plot"]

INTERVAL_WIDTH, ROW_HEIGHT, PAIR_ROW_HEIGHT = 300, 20, 12
BAR_WIDTH, BAR_HEIGHT = 1000, 26
PLOT_WIDTH, PLOT_HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 68, 32, 16, 38
LOG_SCALE_RATIO = 25
"""Ratio of the longest to the shortest time from which the axis is logarithmic."""
MEDIAN = 10
"""Position of the median in a latency curve."""


def _svg(css_class: str, width: int, height: int, label: str, *children: str, **attributes: object) -> Html:
    size = f"0 0 {width} {height}"
    return element(
        "svg",
        element("title", label),
        *children,
        class_=css_class,
        viewBox=size,
        role="img",
        aria_label=label,
        **attributes,
    )


def interval_plot(rates: Sequence[tuple[str, Rate]]) -> Html:
    """Return a row with a point and its interval for each rate, from 0 to 100 percent.

    Args:
        rates: CSS class and rate of each point. Two of them are drawn one above the other.
    """
    is_single = len(rates) == 1
    height = ROW_HEIGHT if is_single else PAIR_ROW_HEIGHT * len(rates) + 4
    children = [
        element("line", class_="grid", x1=_x(share), x2=_x(share), y1=0, y2=height) for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    for number, (css_class, rate) in enumerate(rates):
        if rate.value is not None:
            y = height / 2 if is_single else 8 + PAIR_ROW_HEIGHT * number
            low, high = rate.interval
            children.append(element("line", class_=f"whisker {css_class}", x1=_x(low), x2=_x(high), y1=y, y2=y))
            children.append(element("circle", class_=f"point {css_class}", cx=_x(rate.value), cy=y, r=4.5))
    label = "; ".join(_describe(rate) for _, rate in rates)
    return _svg("interval", INTERVAL_WIDTH, height, label, *children)


def _x(share: float) -> float:
    return round(8 + share * (INTERVAL_WIDTH - 16), 2)


def _describe(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rate.count} of {rate.total}, interval {low:.1%} to {high:.1%}" if rate.total else "no data"


def cause_bar(counts: Sequence[tuple[str, int]], total: int) -> Html:
    """Return a stacked bar: the number for each CSS class, as shares of the total."""
    parts, x = [], 0.0
    for css_class, count in counts:
        width = BAR_WIDTH * count / max(total, 1)
        if count:
            visible_width = round(max(width - min(2.0, width / 2), 1), 2)
            parts.append(element("rect", class_=css_class, x=round(x, 2), y=0, width=visible_width, height=BAR_HEIGHT))
        x += width
    label = ", ".join(f"{count} {css_class.removeprefix('cause-')}" for css_class, count in counts if count)
    return _svg("causes", BAR_WIDTH, BAR_HEIGHT, label, *parts, preserveAspectRatio="none")


def latency_plot(curves: Sequence[tuple[str, LatencyCurve]]) -> Html:
    """Return the distribution of times: the share of replies that arrived within each time.

    Args:
        curves: CSS class and curve of each line.
    """
    times = [seconds for _, curve in curves for seconds in curve.seconds]
    scale = _TimeScale(min(times), max(times))
    label = "; ".join(f"{curve.name}: median {format_seconds(curve.seconds[MEDIAN])}" for _, curve in curves)
    lines = [_polyline(css_class, curve, scale) for css_class, curve in curves]
    return _svg("latency", PLOT_WIDTH, PLOT_HEIGHT, label, _share_axis(), _time_axis(scale), *lines)


def _share_axis() -> Html:
    return join(
        join(
            [
                element("line", class_="grid", x1=LEFT, x2=PLOT_WIDTH - RIGHT, y1=_y(share), y2=_y(share)),
                element("text", f"{share} %", class_="tick", x=LEFT - 6, y=_y(share) + 4, text_anchor="end"),
            ]
        )
        for share in (0, 25, 50, 75, 100)
    )


def _time_axis(scale: _TimeScale) -> Html:
    bottom = PLOT_HEIGHT - BOTTOM
    return join(
        join(
            [
                element("line", class_="grid", x1=scale.x(tick), x2=scale.x(tick), y1=TOP, y2=bottom),
                element(
                    "text", format_seconds(tick), class_="tick", x=scale.x(tick), y=bottom + 24, text_anchor="middle"
                ),
            ]
        )
        for tick in scale.ticks()
    )


def _y(share: float) -> float:
    return round(PLOT_HEIGHT - BOTTOM - share / 100 * (PLOT_HEIGHT - BOTTOM - TOP), 2)


def _polyline(css_class: str, curve: LatencyCurve, scale: _TimeScale) -> Html:
    step = 100 / (len(curve.seconds) - 1)
    points = " ".join(f"{scale.x(seconds)},{_y(step * n)}" for n, seconds in enumerate(curve.seconds))
    return element("polyline", element("title", curve.name), class_=f"curve {css_class}", points=points)


class _TimeScale:
    """Horizontal axis: linear from 0, or logarithmic if the times differ much."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = max(shortest, 0.001)
        self._longest = max(longest, self._shortest * 1.001)
        self._is_log = self._longest / self._shortest > LOG_SCALE_RATIO

    def x(self, seconds: float) -> float:
        if self._is_log:
            low, high = log10(self._shortest), log10(self._longest)
            share = (log10(max(seconds, self._shortest)) - low) / (high - low)
        else:
            share = seconds / self._longest
        return round(LEFT + share * (PLOT_WIDTH - LEFT - RIGHT), 2)

    def ticks(self) -> list[float]:
        if self._is_log:
            powers = [10.0**power for power in range(floor(log10(self._shortest)), floor(log10(self._longest)) + 1)]
            steps = [power * factor for power in powers for factor in (1, 3)]
            return [tick for tick in steps if self._shortest <= tick <= self._longest]
        magnitude = 10.0 ** floor(log10(self._longest))
        step = next(magnitude / divisor for divisor in (5, 2, 1, 0.5) if self._longest * divisor / magnitude <= 8)
        return [round(step * n, 6) for n in range(int(self._longest / step) + 1)]
