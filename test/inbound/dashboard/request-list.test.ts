import fc from "fast-check";
import { expect, it } from "vitest";
import type { LogPosition } from "../../../src/ledger/ledger-store.ts";
import type { EndedRequest } from "../../../src/inbound/dashboard/request-feed.ts";
import { mergePages, type RequestPage } from "../../../src/inbound/dashboard/request-list.ts";
import { entry } from "../../store/contracts/entries.ts";

const ended = (endedAtMs: number, completionId: string): EndedRequest => ({
  entry: entry({ endedAtMs, completionId }),
  keyName: undefined,
  message: "",
  refused: false,
});

const after = (left: LogPosition, right: LogPosition): boolean =>
  left.endedAtMs < right.endedAtMs || (left.endedAtMs === right.endedAtMs && left.completionId < right.completionId);

const positionOf = ({ entry: { endedAtMs, completionId } }: EndedRequest): LogPosition => ({ endedAtMs, completionId });

/** A log that shows a window of its requests at a time, as the store does with filters. */
function pageOf(
  all: readonly EndedRequest[],
  from: LogPosition | undefined,
  limit: number,
  windowMs: number,
): RequestPage {
  const left = all.filter((each) => from === undefined || after(positionOf(each), from));
  const endMs = (from?.endedAtMs ?? 30) - windowMs;
  const inWindow = left.filter((each) => each.entry.endedAtMs >= endMs);
  const requests = inWindow.slice(0, limit);
  if (inWindow.length > limit) return { requests, next: positionOf(requests.at(-1)!) };
  return { requests, next: inWindow.length < left.length ? { endedAtMs: endMs, completionId: "" } : undefined };
}

const someLog = (prefix: string) =>
  fc
    .array(fc.nat(20), { maxLength: 12 })
    .map((times) =>
      times
        .map((endedAtMs, index) => ended(endedAtMs, `${prefix}${String.fromCodePoint(97 + index)}`))
        .toSorted((left, right) => (after(positionOf(left), positionOf(right)) ? 1 : -1)),
    );

it("pages of two logs merge into one log, in order and without gaps", () => {
  fc.assert(
    fc.property(
      someLog("x"),
      someLog("y"),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 30 }),
      (a, b, limit, windowMs) => {
        const seen: EndedRequest[] = [];
        let from: LogPosition | undefined;
        for (let round = 0; round < 100; round += 1) {
          const page = mergePages([pageOf(a, from, limit, windowMs), pageOf(b, from, limit, 30)], limit);
          expect(page.requests.length).toBeLessThanOrEqual(limit);
          seen.push(...page.requests);
          if (page.next === undefined) break;
          from = page.next;
        }
        const all = [...a, ...b].toSorted((left, right) => (after(positionOf(left), positionOf(right)) ? 1 : -1));
        expect(seen).toEqual(all);
      },
    ),
  );
});
