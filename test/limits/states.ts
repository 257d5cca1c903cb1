import { returnTo, type RateMoment, renewIn, type SubjectBook, takeFrom } from "../../src/limits/memory.ts";
import type { Held, RateDecision, RateDemand, RateRelease, RateSubject } from "../../src/limits/rates.ts";
import { type SubjectState, toBook, toState } from "../../src/limits/state.ts";

/** States of subjects, as a database keeps them. */
export type SubjectStates = ReadonlyMap<string, SubjectState>;

/** The decision on a demand, and the new states of its subjects. A refusal changes states too: store them. */
export function decide(
  states: SubjectStates,
  demand: RateDemand,
  moment: RateMoment,
): { readonly decision: RateDecision; readonly states: SubjectStates } {
  const books = toBooks(states, namesOf(demand.subjects), moment);
  const decision = takeFrom((subject) => books.get(subject)!, demand, moment);
  return { decision, states: toStates(books) };
}

/** Returns the states of the subjects after a release. */
export function giveBack(states: SubjectStates, release: RateRelease, moment: RateMoment): SubjectStates {
  const books = toBooks(states, namesOf(release.subjects), moment);
  returnTo((subject) => books.get(subject)!, release, moment);
  return toStates(books);
}

/** Returns the states of the subjects whose slots were renewed. */
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
  moment: Pick<RateMoment, "nowMs">,
): ReadonlyMap<string, SubjectBook> {
  return new Map([...subjects].map((subject) => [subject, toBook(states.get(subject), moment)]));
}

function toStates(books: ReadonlyMap<string, SubjectBook>): SubjectStates {
  return new Map([...books].map(([subject, book]) => [subject, toState(book)]));
}
