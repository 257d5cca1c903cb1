import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import {
  boundFees,
  completeCounts,
  type Fees,
  type MaxToolUses,
  type ToolUses,
  unboundedFees,
} from "../../src/core/fees.ts";
import { measurePrompt } from "../../src/core/token-estimate.ts";
import { NO_FEES, toPrice } from "../support/prices.ts";

const MICRO_USD = 1_000_000;
const FEES: Fees = {
  requests: 1 * MICRO_USD,
  searchedRequests: 10 * MICRO_USD,
  webSearches: 100 * MICRO_USD,
  fileSearches: 1_000 * MICRO_USD,
  codeExecutions: undefined,
};

const sending = (
  uses: ToolUses | undefined,
  { maxToolUses, fees = FEES }: { maxToolUses?: MaxToolUses; fees?: Fees } = {},
) => {
  const price = { ...toPrice({ input: 0, cachedInput: 0, output: 0, imageOutput: 0 }), fees };
  return { model: { id: "m", price, maxToolUses }, sent: { uses } };
};

describe("the fees that are held for a request", () => {
  it.each<[string, ToolUses | undefined, MaxToolUses, number | undefined]>([
    ["are that for a request without tools", undefined, {}, 1],
    ["have each search that it allows", { webSearches: 3 }, {}, 311],
    ["have all kinds of uses", { webSearches: 1, fileSearches: 2 }, {}, 2_111],
    ["have no bound for searches without one", { webSearches: Infinity }, {}, undefined],
    ["are bounded by what the operator states", { webSearches: Infinity }, { webSearches: 5 }, 511],
    ["are those that the request allows, beyond what the operator states", { webSearches: 9 }, { webSearches: 5 }, 911],
    ["have the most uses that are a bound", { webSearches: 10_000 }, {}, 1_000_011],
    ["have no bound for more uses than services make", { webSearches: 10_001 }, {}, undefined],
    [
      "are what the operator states where the request allows more",
      { webSearches: 2 ** 31 - 1 },
      { webSearches: 5 },
      511,
    ],
    ["are not known for uses without a price", { codeExecutions: 1 }, { codeExecutions: 1 }, undefined],
    ["are not known for unknown tools", { unknown: "google_maps" }, { webSearches: 5 }, undefined],
    ["have nothing for uses that the request forbids", { webSearches: 0, codeExecutions: 0 }, {}, 1],
  ])("%s", (_, uses, maxToolUses, microUsd) => {
    const fees = boundFees(sending(uses, { maxToolUses }));
    expect(fees).toBe(microUsd === undefined ? undefined : microUsd * MICRO_USD);
  });

  it("need no bound for what costs nothing", () => {
    const fees = { ...FEES, webSearches: 0 };
    expect(boundFees(sending({ webSearches: Infinity }, { fees }))).toBe(11 * MICRO_USD);
  });
});

describe("documents that a provider reads for a fee", () => {
  const documents = (hasDocuments: boolean, billsDocuments?: boolean) => {
    const { model, sent } = sending(undefined);
    return { model: { ...model, billsDocuments }, sent, prompt: { hasDocuments } };
  };

  it("have no bound", () => {
    expect(boundFees(documents(true, true))).toBeUndefined();
    expect(boundFees(documents(false, true))).toBe(MICRO_USD);
    expect(boundFees(documents(true))).toBe(MICRO_USD);
    expect(unboundedFees(documents(true, true)).message).toBe(
      "messages: what the provider of m charges for documents is not known here, so it is not allowed under a budget.",
    );
  });

  it("are documents and native parts with documents", () => {
    const hasDocuments = (part: MessageInitShape<typeof PartSchema>): boolean | undefined => {
      const request = create(CompletionRequestSchema, { messages: [{ role: Role.USER, parts: [part] }] });
      return measurePrompt(request).hasDocuments;
    };
    const native = (json: string) => hasDocuments({ kind: { case: "native", value: { dialect: "openai", json } } });
    const file = { kind: { case: "file" as const, value: { source: { case: "id" as const, value: "file_1" } } } };
    expect(hasDocuments(file)).toBe(true);
    expect(hasDocuments({ kind: { case: "toolResult", value: { toolCallId: "c", parts: [file] } } })).toBe(true);
    expect(native('{"type":"input_file","file_id":"f"}')).toBe(true);
    expect(native('{"type":"f\\u0069le","file":{}}')).toBe(true);
    expect(native('{"type":"computer_call_output","output":[{"Type":"input_file"}]}')).toBe(true);
    expect(native('{"type":"web_search_call"}')).toBe(false);
    expect(native('{"type":"local_shell_call","action":{"command":["cat","file"]}}')).toBe(false);
    expect(native('{"type":"local_shell_call_output","output":"\\u001b[1mread_file"}')).toBe(false);
    expect(native('{"type":"tool_reference","tool_name":"read_file"}')).toBe(false);
    expect(hasDocuments({ kind: { case: "text", value: '"file"' } })).toBe(false);
  });
});

describe("a request whose fees have no bound", () => {
  it.each<[string, ToolUses, Fees, string]>([
    [
      "an unknown tool",
      { unknown: "google_maps" },
      FEES,
      "tools: what google_maps costs is not known here, so it is not allowed under a budget.",
    ],
    [
      "a tool without a price",
      { webSearches: 1 },
      NO_FEES,
      "tools: the price of web searches of m is not known here, so it is not allowed under a budget; let the operator write price.web_search of the model.",
    ],
    [
      "a tool without a bound",
      { fileSearches: Infinity },
      FEES,
      "tools: nothing bounds the file searches of this request, so it is not allowed under a budget; set max_uses of the tool (at most 10000), where it has that field, or let the operator state max_tool_uses.file_search of m.",
    ],
  ])("is refused for %s, and says what would help", (_, uses, fees, message) => {
    expect(unboundedFees(sending(uses, { fees })).message).toBe(message);
  });
});

describe("the counts of a provider", () => {
  const completed = (counts: MessageInitShape<typeof UsageSchema>, sent: Parameters<typeof sending>) => {
    const usage = create(UsageSchema, counts);
    completeCounts(usage, sending(...sent));
    return usage;
  };

  it("name units that have no price, once", () => {
    const counts = { webSearches: 1, codeExecutions: 2, unknownUnits: ["steps", "code executions"] };
    expect(completed(counts, [undefined]).unknownUnits).toEqual(["code executions", "steps"]);
    expect(completed({ fileSearches: 0 }, [undefined]).unknownUnits).toEqual([]);
  });

  it("have all searches that there may have been where the provider counts none", () => {
    const uncounted = { webSearches: Infinity, uncounted: true };
    const bounded = { maxToolUses: { webSearches: 2 } };
    expect(completed({}, [uncounted, bounded]).webSearches).toBe(2);
    expect(completed({ webSearches: 1 }, [uncounted, bounded]).webSearches).toBe(1);
    const unknown = completed({}, [uncounted]);
    expect([unknown.webSearches, unknown.unknownUnits]).toEqual([undefined, ["web searches"]]);
    // The host's fee for the request is for them.
    expect(completed({}, [uncounted, { fees: { ...FEES, webSearches: 0 } }]).unknownUnits).toEqual([]);
  });
});
