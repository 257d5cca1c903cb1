const DAY_MS = 24 * 60 * 60_000;

/** Lifetimes of a key in milliseconds, with labels. */
export const LIFETIMES = [
  ["", "Never"],
  [String(DAY_MS / 24), "In an hour"],
  [String(DAY_MS), "In a day"],
  [String(7 * DAY_MS), "In 7 days"],
  [String(30 * DAY_MS), "In 30 days"],
  [String(90 * DAY_MS), "In 90 days"],
  [String(365 * DAY_MS), "In a year"],
] as const;
