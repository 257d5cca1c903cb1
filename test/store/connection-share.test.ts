import { describe, expect, it } from "vitest";
import { poolSizes, shareConnections } from "../../src/store/postgres/connection-share.ts";

describe("the connections of a PostgreSQL server", () => {
  it.each([
    { processes: 1, limit: 97, each: 14, isEnough: true },
    { processes: 6, limit: 97, each: 14, isEnough: true },
    { processes: 7, limit: 97, each: 12, isEnough: true },
    { processes: 21, limit: 97, each: 4, isEnough: true },
    { processes: 22, limit: 97, each: 4, isEnough: false },
    { processes: 100, limit: 500, each: 4, isEnough: true },
    { processes: 3, limit: 97, wanted: 40, each: 40, isEnough: false },
    { processes: 3, limit: 200, wanted: 40, each: 40, isEnough: true },
  ])("are shared: $limit by $processes processes", ({ wanted, ...share }) => {
    expect(shareConnections({ ...share, wanted })).toEqual(share);
  });

  it.each([
    [4, { usual: 2, reports: 1 }],
    [8, { usual: 6, reports: 1 }],
    [14, { usual: 10, reports: 3 }],
    [100, { usual: 96, reports: 3 }],
  ])("of a process are for LISTEN, reports and completions: %i", (each, sizes) => {
    expect(poolSizes(each)).toEqual(sizes);
  });
});
