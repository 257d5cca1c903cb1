import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AttemptOutcome,
  Code,
  type Completion,
  type CompletionChunk,
  type CompletionRequestInit,
  CompletionRequestSchema,
  FinishReason,
  imagePart,
  Modality,
  Role,
  textDelta,
  textOf,
  textPart,
  toolCallsOf,
  toolResult,
  userText,
} from "@parley/client";
import { failure, MODEL, parley, PICTURE, say } from "./support.js";

/** A picture of one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const TELLS_WEATHER: CompletionRequestInit = {
  tools: [
    {
      kind: {
        case: "function",
        value: {
          name: "get_weather",
          description: "Tells the weather of a city.",
          parametersJson: '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
        },
      },
    },
  ],
};

const ASKS_FOR_WEATHER: CompletionRequestInit = {
  ...say("What is the weather in Kiel?"),
  ...TELLS_WEATHER,
  toolChoice: { choice: { case: "function", value: "get_weather" } },
};

const PAINTS: CompletionRequestInit = {
  ...say("Draw a tide.", "painter"),
  modalities: [Modality.TEXT, Modality.IMAGE],
};

test("unary: returns a whole completion", async () => {
  const completion = await parley.completions.create(say("Hello"));
  assert.match(completion.id, /^chatcmpl-/);
  assert.equal(completion.model, MODEL);
  assert.notEqual(textOf(completion), "");
  assert.equal(completion.choices[0]?.finishReason, FinishReason.STOP);
  assert.ok(completion.usage!.totalTokens > 0);
  assert.equal(completion.report?.attempts.at(-1)?.outcome, AttemptOutcome.SERVED);
});

test("count: tells the size of a request", async () => {
  const { model, inputTokens } = await parley.completions.count(say("Tell me about tides."));
  assert.equal(model, MODEL);
  assert.ok(inputTokens > 0);
  const longer = await parley.completions.count(say("Tell me about tides. ".repeat(100)));
  assert.ok(longer.inputTokens > inputTokens);
});

test("metadata: sends the request ID and shows the response metadata", async () => {
  for (const run of [
    (options: object) => parley.completions.create(say("Hello"), options),
    (options: object) => parley.completions.stream(say("Hello"), options).completion(),
  ]) {
    let header = new Headers();
    await run({ requestId: "req_mine", onHeader: (given: Headers) => (header = given) });
    assert.equal(header.get("x-request-id"), "req_mine");
    assert.equal(header.get("parley-requested-model"), MODEL);
    assert.equal(header.get("parley-served-model"), MODEL);
    assert.equal(header.get("parley-attempts"), "1");
    assert.ok(header.has("parley-overhead-ms"));
  }
});

test("stream-grammar: start first, report last, parts in order, and their sum is the completion", async () => {
  const stream = parley.completions.stream(say("Tell me about tides."));
  const chunks: CompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const cases = chunks.map(({ event }) => event.case);
  assert.equal(cases[0], "start");
  assert.equal(cases.at(-1), "report");
  const open = new Set<number>();
  for (const { event } of chunks) {
    if (event.case === "partStart") open.add(event.value.partIndex);
    if (event.case === "partDelta") assert.ok(open.has(event.value.partIndex));
    if (event.case === "partFinish") assert.ok(open.delete(event.value.partIndex));
    if (event.case === "choiceFinish") assert.equal(open.size, 0);
  }
  assert.ok(cases.filter((each) => each === "partDelta").length > 1);
  assert.ok(cases.indexOf("choiceFinish") > cases.lastIndexOf("partFinish"));

  const completion = await stream.completion();
  assert.notEqual(textOf(completion), "");
  assert.equal(textOf(completion), chunks.map(textDelta).join(""));
  assert.equal(completion.choices[0]?.finishReason, FinishReason.STOP);
  assert.equal(completion.usage, valueOf(chunks, "usage"));
  assert.equal(completion.report, valueOf(chunks, "report"));
  assert.equal(completion.id, (valueOf(chunks, "start") as { id: string }).id);
});

test("stream-grammar: a stream sums up to what create returns", async () => {
  for (const request of [say("Tell me about tides."), ASKS_FOR_WEATHER, PAINTS, { ...say("Hi"), logprobs: {} }]) {
    const whole = await parley.completions.create(request);
    const summed = await parley.completions.stream(request).completion();
    assert.deepEqual(answerOf(summed), answerOf(whole));
  }
});

test("image: a picture in, and a picture of 6 MiB out", async () => {
  const seen = await parley.completions.create({
    model: MODEL,
    messages: [{ role: Role.USER, parts: [textPart("What is this?"), imagePart(PIXEL, "image/png")] }],
  });
  assert.notEqual(textOf(seen), "");
  assertPicture(await parley.completions.create(PAINTS));

  const stream = parley.completions.stream(PAINTS);
  let pieces = 0;
  for await (const { event } of stream)
    if (event.case === "partDelta" && event.value.content.case === "imageData") pieces++;
  assert.ok(pieces >= 12, `the picture came in ${pieces} pieces`);
  assertPicture(await stream.completion());
});

test("large-request: sends a message of 6 MiB", async () => {
  const completion = await parley.completions.create(say("tides ".repeat(1024 * 1024), "spare"));
  assert.equal(textOf(completion), "From the spare model.");
});

test("large-request: one over the gateway's limit is refused, and ends no other call", async () => {
  const request = say("a".repeat(33 * 1024 * 1024), "spare");
  const error = await failure(parley.completions.create(request));
  assert.equal(error.code, Code.ResourceExhausted);
  assert.match(error.message, /receives at most/);
  assert.equal(error.retryable, false);
  assert.equal(textOf(await parley.completions.create(say("Hello", "spare"))), "From the spare model.");
});

test("tool-round-trip: call, result, answer", async () => {
  const asked = await parley.completions.stream(ASKS_FOR_WEATHER).completion();
  const [toolCall] = toolCallsOf(asked);
  assert.equal(asked.choices[0]?.finishReason, FinishReason.TOOL_CALLS);
  assert.equal(toolCall?.name, "get_weather");
  assert.equal(toolCall.input.case, "argumentsJson");
  assert.equal(typeof JSON.parse(toolCall.input.value), "object");

  const answer = await parley.completions.create({
    model: MODEL,
    ...TELLS_WEATHER,
    messages: [userText("Hello."), asked.choices[0]!.message!, toolResult(toolCall.id, '{"sky":"clear"}')],
  });
  assert.notEqual(textOf(answer), "");
});

test("strict: an unknown field is refused", async () => {
  const request = create(CompletionRequestSchema, say("Hello"));
  request.$unknown = [{ no: 1000, wireType: 0, data: new Uint8Array([1]) }];
  const { report } = await parley.completions.create(request);
  assert.deepEqual(
    report?.omitted.map(({ field }) => field),
    ["1000"],
  );

  request.strict = true;
  const error = await failure(parley.completions.create(request));
  assert.equal(error.code, Code.InvalidArgument);
  assert.deepEqual(
    error.fieldViolations.map(({ field }) => field),
    ["1000"],
  );
});

function valueOf(chunks: readonly CompletionChunk[], name: "start" | "usage" | "report"): unknown {
  return chunks.map(({ event }) => event).find((event) => event.case === name)?.value;
}

/** What two runs of the same request have in common. IDs of tool calls are made for each. */
function answerOf({ model, choices, usage }: Completion) {
  const messages = choices.map(({ message, ...choice }) => ({
    ...choice,
    parts: message!.parts.map((part) =>
      part.kind.case === "toolCall" ? { ...part, kind: { ...part.kind, value: { ...part.kind.value, id: "" } } } : part,
    ),
    role: message!.role,
  }));
  return { model, messages, usage };
}

function assertPicture({ choices }: Completion): void {
  const picture = choices[0]!.message!.parts.map(({ kind }) => kind).find((kind) => kind.case === "image");
  assert.equal(picture?.value.mediaType, "image/png");
  assert.equal(picture.value.source.case, "data");
  assert.ok(PICTURE.equals(picture.value.source.value as Uint8Array), "the picture's bytes differ");
}
