import { describe, expect, it } from "vitest";
import { toEmbedding, toRequest } from "./scenarios/ask.ts";
import { type Caller, Unsayable } from "./scenarios/callers/caller.ts";
import { CHAT } from "./scenarios/callers/chat.ts";
import { BATCH_EMBED_CONTENTS, EMBED_CONTENT } from "./scenarios/callers/embed-content.ts";
import { EMBEDDINGS } from "./scenarios/callers/embeddings.ts";
import { GEMINI } from "./scenarios/callers/gemini.ts";
import { MESSAGES } from "./scenarios/callers/messages.ts";
import { RESPONSES } from "./scenarios/callers/responses.ts";
import { EMBEDDING } from "./scenarios/embedding.ts";
import { LOOKS } from "./scenarios/failures.ts";
import type { Scenario } from "./scenarios/scenario.ts";
import { SKIPPED } from "./scenarios/skipped.ts";
import { scenariosOf, TABLE, tableOf } from "./scenarios/suite.ts";

const CALLERS = [CHAT, RESPONSES, MESSAGES, GEMINI, EMBEDDINGS, EMBED_CONTENT, BATCH_EMBED_CONTENTS];

const playable = (caller: Caller): readonly Scenario[] => tableOf({ entrance: "http", caller });

/** Names of the scenarios that a format has no word for, by what it lacks. */
function findUnsayable(caller: Caller): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const { name, ask, embed } of playable(caller)) {
    try {
      if (caller.service === "embeddings") caller.write(toEmbedding(ask, embed));
      else caller.write(toRequest(ask), "whole");
    } catch (reason) {
      if (!(reason instanceof Unsayable)) throw reason;
      (found[reason.need] ??= []).push(name);
    }
  }
  return found;
}

describe("the scenario table", () => {
  it("has each title once", () => {
    const names = [...TABLE, ...EMBEDDING].map(({ name }) => name);
    expect(names).toHaveLength(new Set(names).size);
  });

  it("has the original of each scenario that other formats than chat completions skip as a repeat", () => {
    const originals = new Set(TABLE.flatMap(({ name, isRepeat }) => (isRepeat === true ? [] : name)));
    const repeats = TABLE.filter(({ isRepeat }) => isRepeat === true);
    expect(repeats.length).toBeGreaterThan(0);
    for (const { name } of repeats) expect(originals).toContain(name.replace(/\b(?:beta|local)\b/, "alpha"));
  });

  it.each(CALLERS)("covers every failure code that callers of $format can cause", (caller) => {
    // `internal` needs a bug in the gateway; `response_too_large` has tests with large images; `conflict` is of the dashboard;
    // `stopped` is played in product/attribution.
    const unreachable = new Set(["internal", "response_too_large", "conflict", "stopped"]);
    const promised = ["cancelled", ...Object.keys(LOOKS)].filter((code) => !unreachable.has(code));
    const played = scenariosOf({ entrance: "http", caller }).flatMap(({ expected }) =>
      "failure" in expected ? expected.failure : [],
    );
    expect(new Set(played)).toEqual(new Set(promised));
  });

  it.each(CALLERS)("is skipped in $format exactly where the format has no word", (caller) => {
    const declared = SKIPPED[caller.format].flatMap(({ need, scenarios }) =>
      need === undefined ? [] : [[need, scenarios] as const],
    );
    expect(findUnsayable(caller)).toEqual(Object.fromEntries(declared));
  });

  it.each(CALLERS)("is skipped in $format for another reason where it could be played", (caller) => {
    const unsayable = new Set(Object.values(findUnsayable(caller)).flat());
    const sayable = playable(caller)
      .map(({ name }) => name)
      .filter((name) => !unsayable.has(name));
    const skipped = SKIPPED[caller.format].flatMap(({ need, scenarios }) => (need === undefined ? scenarios : []));
    expect(sayable).toEqual(expect.arrayContaining([...skipped]));
    expect(skipped).toHaveLength(new Set(skipped).size);
  });
});
