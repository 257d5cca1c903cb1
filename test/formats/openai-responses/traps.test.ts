import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { ChoiceWriter, usageChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import { writeState } from "../../../src/formats/openai-responses/envelope.ts";
import { openaiResponses } from "../../../src/formats/openai-responses/format.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { EventStream } from "../../../src/formats/openai-responses/stream.ts";
import { findRoute } from "../../../src/inbound/http/routes.ts";
import {
  readState as readProvidersState,
  writeState as writeProvidersState,
} from "../../../src/providers/openai-responses/state.ts";
import { compareCpuMs } from "../../support/cpu-time.ts";
import { REPORT, startOf } from "../openai-chat/scenarios.ts";
import { ASKED, completionOf, eventsOf, type Json, streamOf, wholeOf } from "./support.ts";
import { failureOf } from "../../support/errors.ts";

/*
 * Traps of the Responses API, by the numbers of the list that the format was made by. 9 (content indexes), 10 (numbers) and 16 (`error`
 * beside `type`) hold for any stream: `properties.test.ts`. 17 (WebSockets) is shown by `product/responses-client`, 21 and 22 (custom
 * tools) by `providers/wire/custom-tools`. 27 cannot happen: nothing is kept. 31 is not of the gateway.
 */

/** The chunks of one choice. */
function chunks(
  write: (writer: ChoiceWriter, out: CompletionChunk[]) => void,
  reason = FinishReason.STOP,
): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  write(writer, out);
  writer.finish({ reason, native: "" }, out);
  out.push(usageChunk(create(UsageSchema, { inputTokens: 1, outputTokens: 2, totalTokens: 3 })));
  return [startOf("a"), ...out, REPORT];
}

const hello = chunks((writer, out) => writer.text({ case: "text", value: "Hello" }, out));
const types = (list: readonly CompletionChunk[]): unknown[] => eventsOf(streamOf(list)).map(({ type }) => type);

/** The message of a failure. */
const refusal = (asked: object): Failure => failureOf(() => readResponsesRequest({ ...ASKED, ...asked }));

const read = (asked: object): ReturnType<typeof readResponsesRequest> => readResponsesRequest({ ...ASKED, ...asked });
const tool = (name: string): object => ({ type: "function", name });

describe("a stream", () => {
  it("opens and closes every item and part (traps 1 and 13)", () => {
    expect(types(hello)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
  });

  it("ends with an ID, the three totals and the whole output (traps 2 and 5)", () => {
    expect(eventsOf(streamOf(hello)).at(-1)).toMatchObject({
      response: {
        id: "resp_FIXTURE",
        usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
        output: [{ type: "message", content: [{ text: "Hello" }] }],
      },
    });
  });

  it("has empty lists in the items that it adds (trap 3)", () => {
    const list = chunks((writer, out) => {
      writer.text({ case: "reasoning", value: "Hm" }, out);
      writer.text({ case: "text", value: "Hello" }, out);
      writer.beginCall({ id: "call_1", name: "f" }, "", out);
    });
    const added = eventsOf(streamOf(list)).filter(({ type }) => type === "response.output_item.added");
    expect(added.map(({ item }) => item)).toMatchObject([
      { type: "reasoning", summary: [] },
      { type: "message", content: [] },
      { type: "function_call", call_id: "call_1", name: "f", arguments: "" },
    ]);
  });

  it("has one ID for an item in all of its events (traps 4 and 6)", () => {
    const events = eventsOf(streamOf(hello)).slice(2, -1);
    const ids = events.map(({ item_id: id, item }) => id ?? (item as Json)["id"]);
    expect(new Set(ids)).toEqual(new Set(["msg_FIXTURE0"]));
  });

  it("has no message in an answer of calls alone (trap 7)", () => {
    const list = chunks((writer, out) => void writer.beginCall({ id: "call_1", name: "f" }, "", out));
    expect(JSON.stringify(eventsOf(streamOf(list)))).not.toContain('"type":"message"');
  });

  it("ends items in the order of their beginning (trap 8)", () => {
    const list = chunks((writer, out) => {
      const first = writer.beginCall({ id: "call_1", name: "f" }, "", out);
      const second = writer.beginCall({ id: "call_2", name: "g" }, "", out);
      writer.endCall(second, out);
      writer.text({ case: "text", value: "And" }, out);
      writer.endCall(first, out);
    });
    const done = eventsOf(streamOf(list)).filter(({ type }) => type === "response.output_item.done");
    expect(done.map(({ output_index: index }) => index)).toEqual([0, 1, 2]);
  });

  it("says nothing of its own but keepalive events, which clients know (traps 11 and 14)", () => {
    const writer = new EventStream(read({}), "req_1");
    expect(writer.keepAlive).toBe(": keep-alive\n\n");
    const stream = writer.write(hello.slice(0, 3)) + writer.keepAlive + writer.write(hello.slice(3));
    expect(eventsOf(stream).map(({ type }) => type)).toContain("keepalive");
    expect(writer.keepAlive).toBe(": keep-alive\n\n");
  });

  it("that breaks off ends with a failed response, and no error event (trap 12)", () => {
    const writer = new EventStream(read({}), "req_1");
    const stream = writer.write(hello.slice(0, 3)) + writer.fail(new Failure("upstream_rate_limited", "Slow down."));
    expect(eventsOf(stream).at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: { code: "rate_limit_exceeded", message: "Slow down." } },
    });
    expect(stream).not.toContain("event: error");
  });

  it("that breaks off before its first event begins and fails (trap 13)", () => {
    const stream = new EventStream(read({}), "req_1").fail(new Failure("upstream_timeout", "Too late."));
    expect(eventsOf(stream)).toMatchObject([
      { type: "response.created", response: { id: "resp_req1", model: "a" } },
      { type: "response.in_progress" },
      { type: "response.failed", response: { id: "resp_req1", error: { code: "server_error" } } },
    ]);
  });

  it("that reached a limit is incomplete, and so is its last item (trap 15)", () => {
    const list = chunks((writer, out) => writer.text({ case: "text", value: "Half" }, out), FinishReason.LENGTH);
    const response = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
    expect(eventsOf(streamOf(list)).at(-1)).toMatchObject({ type: "response.incomplete", response });
    expect(wholeOf(completionOf(list))).toMatchObject({ ...response, output: [{ status: "incomplete" }] });
  });

  it("with a refusal in words is complete, and without words it is not (trap 15a)", () => {
    const inWords = chunks(
      (writer, out) => writer.text({ case: "refusal", value: "No." }, out),
      FinishReason.CONTENT_FILTER,
    );
    const withoutWords = chunks(() => undefined, FinishReason.CONTENT_FILTER);
    expect(wholeOf(completionOf(inWords))).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "refusal", refusal: "No." }] }],
    });
    expect(wholeOf(completionOf(withoutWords))).toMatchObject({ incomplete_details: { reason: "content_filter" } });
  });
});

describe("tools", () => {
  const SPACE = { type: "namespace", name: "agents", tools: [tool("close"), tool("open")] };

  it("of a namespace have one name, and the answer's calls have two (traps 18 and 19)", () => {
    const asked = { tools: [tool("exec"), SPACE] };
    const { request } = read(asked);
    expect(request.tools.map(({ kind }) => (kind.case === "function" ? kind.value.name : ""))).toEqual([
      "exec",
      "agents__close",
      "agents__open",
    ]);
    const list = chunks((writer, out) => void writer.beginCall({ id: "call_1", name: "agents__close" }, "", out));
    const item = { type: "function_call", name: "close", namespace: "agents" };
    expect(wholeOf(completionOf(list), { ...ASKED, ...asked })).toMatchObject({ output: [item] });
    expect(eventsOf(streamOf(list, { ...ASKED, ...asked })).at(-1)).toMatchObject({ response: { output: [item] } });
  });

  it("of a namespace with long names have names of 64 characters, also in earlier calls", () => {
    const name = "x".repeat(50);
    const call = { type: "function_call", call_id: "c", namespace: "agents_of_another_kind", name, arguments: "{}" };
    const { request } = read({
      tools: [{ ...SPACE, name: "agents_of_another_kind", tools: [tool(name)] }],
      input: [call],
    });
    const [told] = request.tools;
    const [called] = request.messages[0]?.parts ?? [];
    const flat = told?.kind.case === "function" ? told.kind.value.name : "";
    expect(flat).toMatch(/^agents_of_another_kind__x+_[0-9a-f]{8}$/);
    expect(flat).toHaveLength(64);
    expect(called?.kind.value).toMatchObject({ name: flat });
  });

  it("of a namespace whose name is longer than 256 characters are refused: each would repeat it", () => {
    const named = (name: string): object => ({ tools: [{ ...SPACE, name }] });
    expect(read(named("n".repeat(256))).request.tools).toHaveLength(2);
    expect(refusal(named("n".repeat(257)))).toMatchObject({ violations: [{ field: "tools[0].name" }] });
  });

  it("that only OpenAI's servers run are native, and refused elsewhere when forced (trap 20)", () => {
    const search = { type: "web_search" };
    const elsewhere = (body: object): object | undefined => read(body).body.notElsewhere?.();
    const { request, nameOf } = read({ tools: [tool("f"), search] });
    expect(request.tools[1]?.kind.value).toMatchObject({ dialect: "openai-responses", json: '{"type":"web_search"}' });
    expect(nameOf("tools[1]")).toBe("tools[1]");
    expect(elsewhere({ tools: [tool("f"), search] })).toBeUndefined();
    expect(elsewhere({ tools: [search] })).toBeUndefined();
    const refused = { detail: "unsupported_value", violations: [{ field: "tools[0].type" }] };
    expect(elsewhere({ tools: [search], tool_choice: search })).toMatchObject(refused);
    expect(elsewhere({ tools: [{ type: "file_search" }] })).toMatchObject(refused);
    expect(elsewhere({ tools: [tool("f"), { type: "file_search" }] })).toBeUndefined();
  });

  it("that are chosen alone are called when any is; chosen beside others only the caller's own words can say it", () => {
    const search = { type: "web_search" };
    const alone = read({ tools: [search], tool_choice: search });
    expect(alone.request.toolChoice?.choice).toEqual({ case: "mode", value: ToolMode.REQUIRED });
    expect(alone.unrecognized).toEqual([]);
    const beside = read({ tools: [tool("f"), search], tool_choice: search });
    expect([beside.request.toolChoice, beside.unrecognized]).toEqual([undefined, ["tool_choice"]]);
    expect(refusal({ tools: [tool("f")], tool_choice: search }).param).toBe("tool_choice");
  });

  it("are flat, as are their choice and the form of the text (trap 30)", () => {
    const { request } = read({
      tools: [tool("f"), { type: "custom", name: "g" }],
      tool_choice: { type: "allowed_tools", mode: "required", tools: [tool("f"), { type: "web_search" }] },
      text: { format: { type: "json_schema", name: "n", schema: { type: "object" } } },
    });
    expect(request.toolChoice?.choice).toMatchObject({ case: "allowed", value: { names: ["f"] } });
    expect(request.responseFormat?.format).toMatchObject({ case: "jsonSchema", value: { name: "n" } });
    expect(refusal({ tools: [{ type: "function", function: { name: "f" } }] }).param).toBe("tools[0].name");
  });
});

describe("what comes back", () => {
  it("is read by what is in it, never by its ID (trap 23)", () => {
    const item = { type: "reasoning", id: "rs_unknown", summary: [{ type: "summary_text", text: "Hm" }] };
    expect(read({ input: [item] }).request.messages[0]?.parts[0]?.kind.value).toMatchObject({ text: "Hm" });
    expect(refusal({ input: [{ type: "item_reference", id: "rs_1" }] }).param).toBe("input[0]");
    expect(refusal({ input: [{ id: "rs_1" }] }).param).toBe("input[0]");
  });

  it.each([
    ["of another server", "gAAAAABo"],
    ["that was made up", Buffer.from('{"parley":1,"reasoning":{"text":1}}').toString("base64")],
    ["that is cut", writeState({ reasoning: { text: "Hm", signature: "s" } }).slice(0, -9)],
    ["that is too large", writeState({ reasoning: { text: "x".repeat(7_000_000) } })],
    ["that is deep", Buffer.from(`{"parley":1,"reasoning":${"[".repeat(9999)}`).toString("base64")],
  ])("has state %s: it is left out and listed (trap 24)", (_, encrypted_content) => {
    const input = [
      { role: "user", content: "Hi" },
      { type: "reasoning", summary: [], encrypted_content },
    ];
    const { request, unrecognized } = read({ input });
    expect(unrecognized).toEqual(["input[1]"]);
    expect(request.messages).toHaveLength(1);
  });

  it("has the longest reasoning that a provider can be sent back", () => {
    const item = { id: "rs_1", summary: [], encrypted_content: "x".repeat(3 * 1024 * 1024 - 200) };
    const signature = writeProvidersState({ reasoning: item });
    expect(signature.length).toBeGreaterThan(4 * 1024 * 1024 - 300);
    expect(readProvidersState(signature)).toEqual({ reasoning: item });
    const encrypted_content = writeState({ reasoning: { text: "Hm", signature } });
    const { request } = read({ input: [{ type: "reasoning", summary: [], encrypted_content }] });
    expect(request.messages[0]?.parts[0]?.signature).toBe(signature);
  });

  it("has thousands of calls and states of others: it is read in time proportional to its size", () => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const calls = Array.from({ length: 2500 }, () => call);
    const state = { type: "reasoning", encrypted_content: writeState({ tool_call: "x", signature: "s" }), summary: [] };
    const states = Array.from({ length: 5000 }, () => state);
    const bound = (separateMs: number): number => 3 * separateMs + 4;
    const { workMs, referenceMs } = compareCpuMs(
      () => read({ input: [...calls, ...states] }),
      () => [read({ input: calls }), read({ input: states })],
      (least) => least.workMs <= bound(least.referenceMs),
    );
    expect(workMs).toBeLessThanOrEqual(bound(referenceMs));
  });

  it("may ask for state of models without reasoning (trap 25)", () => {
    expect(read({}).unrecognized).toEqual([]);
  });

  it("continues no response, conversation or prompt of a store (trap 26)", () => {
    expect(refusal({ previous_response_id: "resp_1" }).detail).toBe("previous_response_not_found");
    for (const field of ["conversation", "prompt"]) expect(refusal({ [field]: { id: "x" } }).param).toBe(field);
    expect(refusal({ background: true }).param).toBe("background");
  });

  it("has results of texts and pictures (trap 28)", () => {
    const output = [
      { type: "input_text", text: "A picture" },
      { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" },
    ];
    const input = [
      { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output },
    ];
    const { request } = read({ input });
    expect(request.messages.map(({ role }) => role)).toEqual([Role.ASSISTANT, Role.TOOL]);
    expect(request.messages[1]?.parts[0]?.kind.value).toMatchObject({
      toolCallId: "call_1",
      parts: [{ kind: { case: "text" } }, { kind: { case: "image", value: { mediaType: "image/png" } } }],
    });
  });

  it("has null and empty values, which are absent (trap 29)", () => {
    const { request, unrecognized } = read({
      input: [
        { type: "reasoning", summary: [], content: null, encrypted_content: null },
        { role: "user", content: "Hi" },
      ],
      tools: [],
      tool_choice: null,
      text: {},
      include: [],
      instructions: null,
      metadata: null,
      reasoning: { effort: null, summary: null },
    });
    expect(unrecognized).toEqual([]);
    expect(request.messages).toHaveLength(1);
    expect(
      read({ tools: [{ ...tool("f"), description: null, parameters: null, strict: null }] }).request.tools,
    ).toHaveLength(1);
  });
});

describe("the output of a tool of the client's own, without a call", () => {
  const call = (id: string): object => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
  const output = (id: string): object => ({ type: "function_call_output", call_id: id, output: "ok" });
  // As Codex 0.169 sends it after a call of `create_goal`.
  const context = {
    type: "function_call_output",
    id: "fco_1",
    name: "goal_objective",
    namespace: "agent",
    output: "Mend the sum",
  };

  it("is said by the user after the results around it", () => {
    const input = [call("1"), call("2"), output("1"), context, output("2"), { role: "user", content: "Go on" }];
    const { request, nameOf } = read({ input });
    expect(request.messages.map(({ role, parts }) => [role, parts.map(({ kind }) => kind.case)])).toEqual([
      [Role.ASSISTANT, ["toolCall", "toolCall"]],
      [Role.TOOL, ["toolResult", "toolResult"]],
      [Role.USER, ["text"]],
      [Role.USER, ["text"]],
    ]);
    expect(request.messages[2]!.parts[0]!.kind.value).toBe("Mend the sum");
    expect(nameOf("messages[2].parts[0]")).toBe("input[3]");
    expect(read({ input: [call("1"), output("1"), context] }).request.messages.at(-1)?.role).toBe(Role.USER);
  });

  it("needs the tool's name", () => {
    const { name: _, ...nameless } = context;
    expect(refusal({ input: [nameless] }).param).toBe("input[0].call_id");
    expect(refusal({ input: [{ ...context, name: 7 }] }).param).toBe("input[0].name");
  });
});

describe("names of fields", () => {
  it("are those of the request", () => {
    const { nameOf } = read({
      instructions: "Be brief.",
      input: [
        { role: "user", content: [{ type: "input_text", text: "Hi" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "x" }] },
      ],
      tools: [tool("f"), { type: "namespace", name: "n", tools: [tool("g")] }],
    });
    const names = {
      "messages[0].parts[0]": "instructions",
      "messages[1].parts[0].image": "input[0].content[0].image",
      "messages[2].parts[0]": "input[1]",
      "messages[3].parts[0].tool_result.tool_call_id": "input[2].call_id",
      "messages[3].parts[0].tool_result.parts[0]": "input[2].output[0]",
      "tools[1].function.parameters_json": "tools[1].tools[0].parameters",
      "response_format.json_schema.name": "text.format.name",
      verbosity: "text.verbosity",
      max_output_tokens: "max_output_tokens",
    };
    for (const [contract, own] of Object.entries(names)) expect(nameOf(contract), contract).toBe(own);
  });

  it("are named in errors about wrong types", () => {
    expect(refusal({ input: [{ role: "user", content: 1 }] }).param).toBe("input[0].content");
    expect(refusal({ input: [{ type: "function_call", name: "f", arguments: "{}" }] }).param).toBe("input[0].call_id");
    expect(refusal({ input: [{ type: 1 }] }).param).toBe("input[0].type");
    expect(refusal({ input: Array.from({ length: 1000 }, () => 1) }).violations).toHaveLength(20);
  });
});

it("owns what is below its path, and nothing else", () => {
  const owned = ["/v1/responses", "/v1/responses/x/cancel", "/v1/responsesx", "/v1/models"].map((path) =>
    openaiResponses.owns(path, {}),
  );
  expect(owned).toEqual([true, true, false, false]);
  expect(findRoute("/v1/responses/resp_1/cancel", "POST")).toEqual({});
});
