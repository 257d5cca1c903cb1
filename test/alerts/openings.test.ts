import { expect, it } from "vitest";
import type { AlertRecord, Finding } from "../../src/alerts/alert.ts";
import { compareFindings } from "../../src/alerts/evaluation.ts";
import { limitOpenings } from "../../src/alerts/openings.ts";

const MINUTE_MS = 60_000;

const findingOf = (changes: Partial<Finding>): Finding => ({
  rule: "key_expiring",
  severity: "warning",
  subject: "",
  period: "",
  accountId: undefined,
  title: "",
  detail: "",
  ...changes,
});

/** The findings about as many keys of each of these accounts as a rule looks at. */
function findingsOf(accounts: readonly string[]): Finding[] {
  return accounts.flatMap((accountId) =>
    Array.from({ length: 100 }, (_, index) => findingOf({ accountId, subject: `key:${accountId}_${index}` })),
  );
}

it("alerts of the installation and of another account open, however many other accounts have opened", () => {
  const open: AlertRecord[] = [];
  let nowMs = 0;
  /** Evaluates once, and returns what opened. */
  const evaluate = (findings: readonly Finding[]): readonly Finding[] => {
    const lately = open.filter(({ rule, openedAtMs }) => rule !== "more_alerts" && nowMs - openedAtMs < 60 * MINUTE_MS);
    const openings = new Map(
      [...Map.groupBy(lately, ({ accountId = "" }) => accountId)].map(([id, own]) => [
        id,
        { name: id, count: own.length },
      ]),
    );
    const limited = limitOpenings(findings, { open, openings });
    const { opened } = compareFindings({ findings: limited, open, nowMs, isComplete: true });
    for (const finding of opened) {
      const none = { resolvedAtMs: undefined, acknowledgedAtMs: undefined, acknowledgedBy: undefined };
      const id = `${open.length}`;
      open.push({
        ...finding,
        ...none,
        id,
        openedAtMs: nowMs,
        seenAtMs: nowMs,
        mutedUntilMs: undefined,
        mutedBy: undefined,
      });
    }
    return opened;
  };
  const flood = findingsOf(Array.from({ length: 60 }, (_, index) => `acct_${index}`));
  // At most 20 of an account open in an hour, and 50 in each evaluation.
  for (let hour = 0; hour < 6; hour += 1, nowMs += 61 * MINUTE_MS)
    for (let evaluations = 0; evaluations < 25; evaluations += 1) evaluate(flood);
  expect(open.length).toBeGreaterThan(2_000);
  const down = findingOf({ rule: "provider_down", subject: "provider:acme" });
  const other = findingOf({ accountId: "acct_zoe", subject: "key:zoe" });
  expect(evaluate([...flood, other, down]).map(({ subject }) => subject)).toEqual(
    expect.arrayContaining([down.subject, other.subject]) as string[],
  );
});
