import { describe, expect, it } from "vitest";
import { figuresOf, isReached } from "../../bench/document/figures.ts";
import { toMarkdown } from "../../bench/document/markdown.ts";
import { replaceOverview } from "../../bench/document/overview.ts";
import { plotCosts } from "../../bench/document/plot.ts";
import { planLoads, UNARY } from "../../bench/loads.ts";
import type { LoadResult, Result } from "../../bench/measure/result.ts";
import { OPEN_LOOPS_BESIDE_PEERS, SHORT_BESIDE_PEERS } from "../../bench/peers/measure.ts";
import type { Measurements } from "../../bench/measurements.ts";

const FLOOR = "byte relay (node:http + undici)";

function result(contestant: string, cpuUs: number, problem?: string): Result {
  return {
    contestant,
    problem,
    cpuUs: { median: cpuUs, quiet: cpuUs },
    ratio: { median: cpuUs / 50, quiet: cpuUs / 50 },
    threadUs: { main: cpuUs - 10, SQLite: 6, V8: 4, libuv: 0, other: 0 },
    warmUp: { slices: 9, isSteady: true },
    unitsPerSecond: 12_345,
    serverShare: 1,
    serverWaitShare: 0,
    generatorShare: 0.1,
    upstreamShare: 0.1,
    slices: [],
  };
}

function loadResult(load: string, ...results: readonly Result[]): LoadResult {
  return { load, unit: "request", floor: FLOOR, results };
}

const UNARY_RESULT = loadResult(UNARY.name, result(FLOOR, 50), result("Parley", 65));

const MEASURED: Measurements = {
  loads: [UNARY_RESULT],
  peers: [
    loadResult(SHORT_BESIDE_PEERS, result(FLOOR, 50), result("Parley", 65), result("@portkey-ai/gateway@1.15.2", 800)),
  ],
  peerTables: [{ title: "what each does", head: ["", "keys"], rows: [["Parley", "in SQLite"]], problems: [] }],
  latency: [
    {
      load: "unary",
      perSecond: 2000,
      results: [{ contestant: "Parley", problem: undefined, p50Ms: 0.9, p99Ms: 4, addedP50Ms: 0.4, addedP99Ms: 3.5 }],
    },
  ],
  scenarios: [
    { title: "bursts", head: ["", "p50 ms"], rows: [["2,048 new connections: Parley", "400"]], problems: [] },
  ],
  memory: [
    {
      contestant: "Parley",
      atRestKiB: 110 * 1024,
      samples: [1, 2, 3, 4].map((index) => ({ requests: index * 1000, kiB: 200 * 1024 })),
      perStreamKiB: 50,
      streams: 5000,
    },
  ],
  startup: [{ contestant: "Parley", timesMs: [400, 420, 440], medianMs: 420 }],
  targets: [],
  formats: [
    {
      ...loadResult("unary", result("openai-chat", 50), result("anthropic", 60)),
      floor: "openai-chat",
    },
  ],
  growth: [loadResult("growth by keys", result("Parley, 10 keys", 50), result("Parley, 100 keys", 52))],
  workers: [loadResult("unary", result("Parley, one process", 50), result("Parley, two workers", 54))],
};

const NOTHING: Measurements = {
  loads: [],
  peers: [],
  peerTables: [],
  latency: [],
  scenarios: [],
  formats: [],
  targets: [],
  growth: [],
  workers: [],
};

const CIRCUMSTANCES = {
  date: "2031-02-03",
  machine: ["a processor"],
  command: "npm run bench -- --write",
  rounds: 10,
  seconds: 0.5,
};

describe("the figures of a run", () => {
  it("are all with a limit, and say which are within it", () => {
    const reached = Object.fromEntries(figuresOf(MEASURED).map((figure) => [figure.what, isReached(figure)]));
    expect(reached).toEqual({
      [`cost to the ${FLOOR}: ${UNARY.name}`]: true,
      [`cost to @portkey-ai/gateway@1.15.2: ${SHORT_BESIDE_PEERS}`]: true,
      "added latency, p50: unary": true,
      "added latency, p99: unary": false,
      "memory of the idle process": true,
      "memory per open stream, 5,000 open": false,
      "memory growth in the second half of 4,000 requests": true,
      "start, median": true,
      "cost, large to small: growth by keys": true,
      "cost of anthropic to openai-chat: unary": true,
      "cost, two workers to one: unary": true,
    });
  });

  it("have a limit of their own for answers that do not wait for the ledger", () => {
    const load = loadResult(UNARY.name, result(FLOOR, 50), result("Parley", 65), result("Parley, interval", 60));
    const figures = figuresOf({ ...MEASURED, loads: [load] });
    expect(figures[1]).toMatchObject({ value: 1.2, limit: 2.6 });
  });

  it("compare with each gateway that was measured", () => {
    const load = loadResult(
      SHORT_BESIDE_PEERS,
      result(FLOOR, 50),
      result("Parley", 150),
      result("Busbar", 100),
      result("GoModel with log", 300, "3 wrong answers"),
    );
    const limits = figuresOf({ ...MEASURED, loads: [], peers: [load] }).map(({ what, value, limit }) => [
      what,
      value,
      limit,
    ]);
    expect(limits[0]).toEqual([`cost to Busbar: ${SHORT_BESIDE_PEERS}`, 1.5, 1.2]);
    expect(limits.flat()).not.toContain(`cost to GoModel with log: ${SHORT_BESIDE_PEERS}`);
  });

  it("compares with nginx where it was measured", () => {
    const load = loadResult(UNARY.name, result("nginx proxy_pass", 10), result(FLOOR, 50), result("Parley", 65));
    const figures = figuresOf({ ...MEASURED, loads: [load] });
    expect(figures[1]).toMatchObject({ value: 6.5, limit: 5 });
  });

  it("omits invalid results", () => {
    const broken = loadResult(UNARY.name, result(FLOOR, 50), result("Parley", 65, "2 wrong answers"));
    expect(figuresOf({ ...MEASURED, loads: [broken] }).some(({ what }) => what.endsWith(UNARY.name))).toBe(false);
  });

  it("has a limit for every load", () => {
    const parts = ["unary", "stream", "grpc", "image"] as const;
    const loads = planLoads(parts).map(({ name }) => loadResult(name, ...UNARY_RESULT.results));
    expect(figuresOf({ ...NOTHING, loads })).toHaveLength(loads.length);
  });
});

describe("the document of a run", () => {
  it("says what was measured, in words and in tables", () => {
    const text = toMarkdown(MEASURED, CIRCUMSTANCES);
    expect(text).toContain("9 of 11 checked limits are met.");
    expect(text).toContain(
      "Parley takes 65.0 CPU-µs per request where the byte relay (node:http + undici) takes 50.0, in the median round 1.30 times as much. " +
        "By thread: main 55.0, SQLite 6.0, V8 4.0.",
    );
    expect(text).toContain("| Parley | 65.0 | 65.0 | 1.30 | 1.30 | 12,345 |");
    expect(text).toContain("| memory per open stream, 5,000 open | 50.00 KiB | 48.00 KiB | **missed** |");
    expect(text).toContain("### bursts\n\n|  | p50 ms |\n| --- | ---: |\n| 2,048 new connections: Parley | 400 |");
    expect(text).toContain("### what each does\n\n|  | keys |\n| --- | ---: |\n| Parley | in SQLite |");
    expect(text).toContain("- a processor");
  });

  it("has no section and no plot for parts that were not measured", () => {
    const text = toMarkdown(NOTHING, CIRCUMSTANCES);
    expect(text).not.toMatch(/## (Cost|Latency|Memory|Start|Growth|Formats|Other|Figures)|\.svg/);
  });

  it("gives the reason for an invalid result", () => {
    const broken = loadResult(UNARY.name, result(FLOOR, 50), result("Parley", 65, "2 wrong answers"));
    const text = toMarkdown({ ...MEASURED, loads: [broken] }, CIRCUMSTANCES);
    expect(text).toContain("| Parley: no figure, 2 wrong answers |");
  });
});

describe("the comparison of gateways in the README", () => {
  const readme =
    "# Parley\n\n<!-- Written by `npm run bench -- --write`: -->\nold\n<!-- until here. -->\n\n## Develop\n";

  it("has costs, latencies and duties of each", () => {
    const loops = {
      title: OPEN_LOOPS_BESIDE_PEERS,
      head: ["", "p50 ms", "p99 ms"],
      rows: [
        ["200 a second: Parley", "1.50", "4.00"],
        ["1,000 a second: Parley", "2.50", "9.00"],
      ],
      problems: [],
    };
    const text = replaceOverview(readme, { ...MEASURED, peerTables: [loops] }, CIRCUMSTANCES);
    expect(text).toMatch(/\| Parley \| in SQLite, cached; .*; ledger in SQLite, before the answer ends \| 65 \|/);
    expect(text).toContain(
      "|  | 200 a second | 1,000 a second |\n| --- | ---: | ---: |\n| Parley | 1.50, 4.00 | 2.50, 9.00 |",
    );
    expect(text).toContain("(2031-02-03, a processor)");
    expect(text).toMatch(/until here. -->\n\n## Develop\n$/);
    expect(text).not.toContain("old");
  });

  it("stays when no others were measured", () => {
    expect(replaceOverview(readme, NOTHING, CIRCUMSTANCES)).toBe(readme);
  });
});

describe("the plot of a run", () => {
  it("has a bar for each figure, as long as its cost, and colours for light and dark backgrounds", () => {
    const svg = plotCosts([loadResult("a <load>", result(FLOOR, 50), result("Parley", 100), result("x", 1, "wrong"))]);
    const widths = [...svg.matchAll(/<rect class="(?:floor|parley|other)".* width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toHaveLength(2);
    expect(widths[1]).toBeCloseTo(2 * widths[0]!, 0);
    expect(svg).toContain("a &lt;load>");
    expect(svg).toContain("prefers-color-scheme: dark");
    expect(svg).toContain("100.0 · 2.00 ×");
  });
});
