// Scale of times on which long idle times take little room.

const MIN_IDLE_SECONDS = 2;
const IDLE_SHARE = 0.04;

/**
 * Create a scale for intervals of activity: [[start, end]] in seconds.
 *
 * `position(time)`: place between 0 and 1. `breaks`: idle times that are shortened, with their place. Without
 * `isShortened`, all times have the same scale.
 */
export function createScale(intervals, isShortened) {
  const active = merge(intervals);
  const start = active[0]?.[0] ?? 0;
  const end = Math.max(active[active.length - 1]?.[1] ?? 0, start + 0.001);
  const busy = active.reduce((sum, [from, to]) => sum + to - from, 0);
  const idle = Math.max(busy * IDLE_SHARE, 0.05);
  const pieces = []; // [start, end, length on the scale]
  active.forEach(([from, to], index) => {
    if (index) {
      const gap = from - active[index - 1][1];
      pieces.push([active[index - 1][1], from, isShortened && gap > Math.max(MIN_IDLE_SECONDS, idle) ? idle : gap]);
    }
    pieces.push([from, to, to - from]);
  });
  const total = Math.max(pieces.reduce((sum, piece) => sum + piece[2], 0), 0.001);

  function position(time) {
    let place = 0;
    for (const [from, to, length] of pieces) {
      if (time <= to) return Math.max(place + (to > from ? ((time - from) / (to - from)) * length : 0), 0) / total;
      place += length;
    }
    return 1;
  }

  const breaks = pieces.filter(([from, to, length]) => length < to - from).map(([from, to]) => ({ seconds: to - from, start: position(from), end: position(to) }));
  return { start, end, total, position, breaks };
}

/** Join intervals that overlap. */
function merge(intervals) {
  const merged = [];
  for (const [start, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}
