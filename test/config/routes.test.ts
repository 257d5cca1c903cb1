import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { errorOf } from "../support/errors.ts";

const parse = (text: string) => parseConfig({ file: "parley.yaml", text, env: {} });

const refusalOf = (text: string): string => errorOf(ConfigError, () => parse(text)).message;

/** The models of a file with one name of several models, without line breaks. */
const chat = (entry: string): string => `models: { chat: ${entry}, tools: { targets: [{ model: beta-3-flash }] } }`;
const TARGETS = "targets: [{ model: alpha-haiku-4.5 }, { model: beta-3-flash }]";

describe("a name with targets", () => {
  it("has defaults, and is no model", () => {
    const { models, routes } = parse(`models: { chat: { ${TARGETS} } }`);
    const target = { weight: 1, when: undefined };
    expect(routes).toEqual([
      {
        id: "chat",
        description: "chat",
        created: 0,
        policy: "ordered",
        affinity: false,
        hedge: undefined,
        targets: [
          { model: "alpha-haiku-4.5", ...target },
          { model: "beta-3-flash", ...target },
        ],
      },
    ]);
    expect(models).toHaveLength(8);
  });

  it("keeps conversations together where its policy spreads them", () => {
    const affinityOf = (settings: string): boolean | undefined =>
      parse(`models: { chat: { ${TARGETS}, ${settings} } }`).routes[0]?.affinity;
    expect(affinityOf("policy: weighted")).toBe(true);
    expect(affinityOf("policy: least_latency")).toBe(true);
    expect(affinityOf("policy: weighted, affinity: false")).toBe(false);
    expect(affinityOf("policy: cheapest")).toBe(false);
  });

  it("is hedged after a percentile or a time, as a model may be", () => {
    const hedgesOf = (settings: string) =>
      parse(`models: { chat: { ${TARGETS}, hedge: { ${settings} } }, beta-3-flash: { hedge: { ${settings} } } }`);
    const expectBoth = (settings: string, hedge: unknown): void => {
      const { models, routes } = hedgesOf(settings);
      expect(routes[0]?.hedge).toEqual(hedge);
      expect(models.find(({ id }) => id === "beta-3-flash")?.hedge).toEqual(hedge);
    };
    expectBoth("after: p95", { after: { percentile: 95 }, budget: 0.05 });
    expectBoth("after: 800ms, budget: 0.1", { after: { ms: 800 }, budget: 0.1 });
    expectBoth("after: 1.5s", { after: { ms: 1_500 }, budget: 0.05 });
  });

  it("has conditions, with open ends", () => {
    const when = "{ prompt_tokens: { min: 1000 }, modalities: [image], tools: false, key_tags: [batch] }";
    const { routes } = parse(`models: { chat: { targets: [{ model: beta-3-flash, when: ${when} }] } }`);
    expect(routes[0]?.targets[0]?.when).toEqual({
      promptTokens: { min: 1_000, max: Number.MAX_SAFE_INTEGER },
      modalities: ["image"],
      tools: false,
      keyTags: ["batch"],
    });
  });

  it("may have the ID of a built-in model, which it replaces, and an alias", () => {
    const file =
      'models: { alpha-opus-4.5: { targets: [{ model: beta-3-flash }] } }\naliases: { "gpt-*": alpha-opus-4.5 }';
    const { models, aliases } = parse(file);
    expect(models.map(({ id }) => id)).not.toContain("alpha-opus-4.5");
    expect(aliases).toEqual([["gpt-*", "alpha-opus-4.5"]]);
  });

  it.each([
    ["{ targets: [] }", "models.chat.targets: "],
    ["{ targets: [{ model: beta-3-flush }] }", "there is no model beta-3-flush; did you mean beta-3-flash?"],
    ["{ targets: [{ model: nothing-like-it }] }", "there is no model nothing-like-it; parley models lists them"],
    [
      "{ targets: [{ model: tools }] }",
      "models.chat.targets[0].model: tools has targets itself; write its models here",
    ],
    ["{ targets: [{ model: chat }] }", "chat has targets itself"],
    ["{ targets: [{ model: gamma-embedding-3-small }] }", "gamma-embedding-3-small makes embeddings"],
    [
      "{ targets: [{ model: beta-3-flash }, { model: beta-3-flash }] }",
      "models.chat.targets[1].model: beta-3-flash is a target of this name already",
    ],
    [
      "{ targets: [{ model: beta-3-flash, weight: 3 }] }",
      "models.chat.targets[0].weight: has no effect with the policy ordered; write policy: weighted",
    ],
    ["{ targets: [{ model: beta-3-flash, weight: 0 }] }", "models.chat.targets[0].weight: must be"],
    [
      "{ targets: [{ model: beta-3-flash, when: { prompt_tokens: { min: 2, max: 1 } } }] }",
      "models.chat.targets[0].when.prompt_tokens.min: must be at most max",
    ],
    ["{ targets: [{ model: beta-3-flash, when: { tool: true } }] }", "did you mean tools?"],
    [`{ ${TARGETS}, hedge: { after: soon } }`, "models.chat.hedge.after: must be a percentile from p50 to p99"],
    [`{ ${TARGETS}, hedge: { after: 20ms } }`, "models.chat.hedge.after: must be at least 50ms"],
    [`{ ${TARGETS}, hedge: { after: p95, budget: 0.6 } }`, "models.chat.hedge.budget: must be at most 0.5"],
    ["{ targets: [{ model: beta-3-flash, when: { key_tags: [A] } }] }", "when.key_tags[0]: must be 1 to 64 of a-z"],
    [`{ ${TARGETS}, labels: { region: eu } }`, "models.chat.labels: is not for a name with targets"],
    [`{ ${TARGETS}, policy: fastest }`, "models.chat.policy: "],
    [`{ ${TARGETS}, affinity: true }`, "models.chat.affinity: has no effect with the policy ordered"],
    [
      `{ ${TARGETS}, provider: alpha }`,
      "models.chat.provider: is not for a name with targets: each target has its own",
    ],
    ["{ provider: alpha, upstream_model: x, policy: weighted }", "models.chat.policy: is only for a name with targets"],
  ])("is refused as %s", (entry, expected) => {
    expect(refusalOf(chat(entry))).toContain(expected);
  });
});

describe("labels", () => {
  it("are those of a model, over those of its provider", () => {
    const { models } = parse(`
providers: { alpha: { dialect: anthropic, api_keys: [abcdefghijklmnop], labels: { region: eu, retention: none } } }
models: { alpha-opus-4.5: { labels: { region: us } }, alpha-haiku-4.5: {} }`);
    const labelsOf = (name: string) => models.find(({ id }) => id === name)?.labels;
    expect(labelsOf("alpha-opus-4.5")).toEqual({ region: "us", retention: "none" });
    expect(labelsOf("alpha-haiku-4.5")).toEqual({ region: "eu", retention: "none" });
    expect(parse("models: {}").models[0]?.labels).toEqual({});
  });

  it.each([
    ["{ regoin: eu }", "labels.regoin: unknown"],
    ["{ region: E U }", "labels.region: must be 1 to 64 of a-z, 0-9, ., _ and -"],
  ])("are refused as %s", (labels, expected) => {
    expect(refusalOf(`models: { alpha-opus-4.5: { labels: ${labels} } }`)).toContain(expected);
  });
});
