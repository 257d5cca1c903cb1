import type { Bucket } from "./bucket.ts";
import type { Held, RateDecision, RateDemand, RateRelease, RateSubject } from "./rates.ts";
import { dropEnded, giveBackTo, type RateMoment, renewIn, type SubjectBook, takeFrom } from "./subject.ts";

/** What is kept of one key or account, in a form that JSON can hold. A missing one means full and without places. */
export interface SubjectState {
  readonly requests?: Bucket;
  readonly tokens?: Bucket;
  /** When the place of each request under way ends by itself; without those that have ended. */
  readonly places: Readonly<Record<string, number>>;
  /** From then on it says no more than a missing one, and may be forgotten. */
  readonly idleAt: number;
}

export type SubjectStates = ReadonlyMap<string, SubjectState>;

/**
 * The decision on a demand, and the states after it: of its subjects only. Refusals have some too: they are to be kept.
 */
export function decide(
  states: SubjectStates,
  demand: RateDemand,
  moment: RateMoment,
): { readonly decision: RateDecision; readonly states: SubjectStates } {
  const books = toBooks(states, namesOf(demand.subjects), moment);
  const decision = takeFrom((subject) => books.get(subject)!, demand, moment);
  return { decision, states: toStates(books) };
}

/** The states of its subjects after a release. */
export function giveBack(states: SubjectStates, release: RateRelease, moment: RateMoment): SubjectStates {
  const books = toBooks(states, namesOf(release.subjects), moment);
  giveBackTo((subject) => books.get(subject)!, release, moment);
  return toStates(books);
}

/** The states of the subjects in which places are held, after these have been renewed. */
export function renewLeases(
  states: SubjectStates,
  held: readonly Held[],
  moment: Pick<RateMoment, "nowMs">,
): SubjectStates {
  const books = toBooks(states, namesOf(held), moment);
  renewIn((subject) => books.get(subject)!, held, moment);
  return toStates(books);
}

function namesOf(subjects: readonly (RateSubject | Held)[]): ReadonlySet<string> {
  return new Set(subjects.map(({ subject }) => subject));
}

function toBooks(
  states: SubjectStates,
  subjects: ReadonlySet<string>,
  { nowMs }: Pick<RateMoment, "nowMs">,
): Map<string, SubjectBook> {
  const books = new Map<string, SubjectBook>();
  for (const subject of subjects) {
    const state = states.get(subject);
    const places = new Map(Object.entries(state?.places ?? {}));
    dropEnded(places, Math.floor(nowMs));
    books.set(subject, { requests: state?.requests, tokens: state?.tokens, places, idleAt: state?.idleAt ?? 0 });
  }
  return books;
}

function toStates(books: ReadonlyMap<string, SubjectBook>): SubjectStates {
  const states = new Map<string, SubjectState>();
  for (const [subject, { requests, tokens, places, idleAt }] of books)
    states.set(subject, {
      ...(requests !== undefined && { requests }),
      ...(tokens !== undefined && { tokens }),
      places: Object.fromEntries(places),
      idleAt,
    });
  return states;
}
