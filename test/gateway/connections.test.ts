import { describe, expect, it } from "vitest";
import { createProviderSockets } from "../../src/gateway/connections.ts";

type Parts = Parameters<typeof createProviderSockets>[0];

function divide(descriptors: number, { maxCalls = 20_000, maxConnections, hedge }: Given = {}) {
  const warnings: object[] = [];
  const overload = { maxCalls, ...(maxConnections !== undefined && { maxConnections }) };
  const parts = { overload, models: [{ hedge }], routes: [] } as unknown as Parts;
  const { maxCalls: calls, sockets } = createProviderSockets(
    parts,
    { warn: (line: object) => warnings.push(line) } as never,
    descriptors,
  );
  let connections = 0;
  while (connections < 100_000 && sockets.take()) connections += 1;
  return { calls, connections, warnings };
}

interface Given {
  readonly maxCalls?: number;
  readonly maxConnections?: number;
  readonly hedge?: { readonly budget: number };
}

describe("the limit of open files", () => {
  it("limits the calls that need connections to providers, beside those of callers", () => {
    expect(divide(1024)).toMatchObject({ calls: 430, connections: 430 });
    expect(divide(1024, { maxConnections: 60 })).toMatchObject({ calls: 800, connections: 800 });
  });

  it("leaves a share of the connections to hedges", () => {
    expect(divide(1024, { hedge: { budget: 0.5 } })).toMatchObject({ calls: 286, connections: 430 });
  });

  it("is warned of at the start, with one that would be enough", () => {
    const { warnings } = divide(1024);
    expect(warnings).toMatchObject([{ open_files: 1024, enough: 40_164, calls: 430, max_calls: 20_000 }]);
    expect(divide(40_164)).toMatchObject({ calls: 20_000, warnings: [] });
    expect(divide(1024, { maxCalls: 400 })).toMatchObject({ calls: 400, warnings: [] });
  });
});
