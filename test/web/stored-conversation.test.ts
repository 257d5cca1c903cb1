import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema, Verbosity } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../gen/parley/v1/tool_pb.js";
import { toRequest } from "../../web/playground/request.ts";
import { fromStored } from "../../web/playground/stored.ts";
import { callMessage, message, requestTo, resultMessage } from "../core/requests.ts";

const STORED = requestTo({
  messages: [
    message(Role.SYSTEM, "Be brief."),
    message(Role.USER, "How old is it?"),
    callMessage("c1", "c2"),
    resultMessage("c1", "100"),
    resultMessage("c2", "200"),
    message(Role.ASSISTANT, "A hundred years."),
    message(Role.USER, "And the other?"),
  ],
  fallbackModels: ["b"],
  tools: [
    {
      kind: { case: "function", value: { name: "f", description: "Does.", parametersJson: '{"type":"object"}' } },
    },
  ],
  toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } },
  temperature: 0.5,
  topP: 0.9,
  maxOutputTokens: 10,
  seed: 7n,
  frequencyPenalty: 1,
  presencePenalty: -1,
  stopSequences: ["END", "STOP"],
  reasoning: { effort: ReasoningEffort.HIGH },
  verbosity: Verbosity.LOW,
  responseFormat: { format: { case: "jsonSchema", value: { name: "answer", schemaJson: '{"type":"object"}' } } },
  modalities: [Modality.TEXT, Modality.IMAGE],
  imageOptions: { size: "1024x1024" },
  strict: true,
});

describe("a stored request in the playground", () => {
  it("is sent as it was", () => {
    const { draft, turns } = fromStored(STORED, "alias");
    expect(draft.chosenModel).toBe("alias");
    const sent = toRequest({ ...draft, model: "a" }, turns);
    // Each result is a message of its own there, as here.
    expect(sent).toEqual(STORED);
  });

  it("names the results of calls, and leaves out what the playground does not have", () => {
    const parts = [
      { kind: { case: "native" as const, value: { dialect: "openai", json: "{" } } },
      { kind: { case: "text" as const, value: "Hi" } },
      { kind: { case: "text" as const, value: "[image/png, 3 KB: not stored]" } },
    ];
    const { turns, draft } = fromStored(
      create(CompletionRequestSchema, {
        messages: [callMessage("c1"), resultMessage("c1"), create(MessageSchema, { role: Role.USER, parts })],
        tools: [{ kind: { case: "function", value: { name: "cut", parametersJson: '{"type"' } } }],
      }),
      "a",
    );
    expect(turns).toMatchObject([
      { role: "assistant", answer: { calls: [{ id: "c1", name: "f" }] } },
      { role: "tool", callId: "c1", name: "f", text: "42" },
      { role: "user", text: "Hi\n[image/png, 3 KB: not stored]" },
    ]);
    expect(draft).toMatchObject({ tools: "", system: "", parameters: {} });
  });
});
