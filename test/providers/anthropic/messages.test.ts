import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import {
  assistant,
  call,
  file,
  image,
  PARIS,
  PNG,
  reasoning,
  request,
  result,
  SIGNED,
  system,
  text,
  toolResult,
  user,
  WEATHER,
} from "./builders.ts";
import { adaptiveModel, budgetModel, switchableModel } from "./model.ts";
import { bodyOf, messagesOf, translate } from "./translating.ts";

describe("messages", () => {
  const textBlock = (value: string): object => ({ type: "text", text: value });

  it("joins neighbouring messages of one role", () => {
    const messages = [user("a"), user("b"), assistant("c"), assistant("d"), user("e")];
    expect(messagesOf(request({ messages }))).toEqual([
      { role: "user", content: [textBlock("a"), textBlock("b")] },
      { role: "assistant", content: [textBlock("c"), textBlock("d")] },
      { role: "user", content: [textBlock("e")] },
    ]);
  });

  it("trap 38: asks the last of only system messages as the user", () => {
    expect(bodyOf(request({ messages: [system("a"), system("b")] }))).toMatchObject({
      system: [textBlock("a")],
      messages: [{ role: "user", content: [textBlock("b")] }],
    });
  });

  it("trap 37: hoists a later system message only where the model neither knows it nor binds its reasoning", () => {
    const conversation = request({ messages: [user("a"), system("s"), user("b")] });
    expect(bodyOf(conversation)).toMatchObject({
      system: [textBlock("s")],
      messages: [{ content: [textBlock("a"), textBlock("b")] }],
    });
    const kept = [{ role: "user", content: [textBlock("a"), textBlock("s"), textBlock("b")] }];
    expect(messagesOf(conversation, adaptiveModel({ midConversationSystem: false }))).toEqual(kept);
    // Between two turns of the user it may not stand by itself.
    expect(messagesOf(conversation, switchableModel())).toEqual(kept);
  });

  it("keeps a system message behind the tool results that it was written before", () => {
    const messages = [user("a"), assistant(undefined, { calls: [PARIS] }), system("s"), toolResult(PARIS.id, "18C")];
    expect(messagesOf(request({ messages, tools: [WEATHER] }), switchableModel())).toMatchObject([
      { role: "user" },
      { role: "assistant" },
      { role: "user", content: [{ type: "tool_result" }, textBlock("s")] },
    ]);
  });

  it("trap 42: puts the results of several calls into one turn, in the order of the calls", () => {
    const messages = [
      user("a"),
      assistant(undefined, {
        calls: [
          { ...PARIS, id: "one" },
          { ...PARIS, id: "two" },
        ],
      }),
      toolResult("two", "2"),
      user("and?"),
      toolResult("one", "1"),
    ];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toMatchObject([
      {},
      {},
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "one", content: "1" },
          { type: "tool_result", tool_use_id: "two", content: "2" },
          textBlock("and?"),
        ],
      },
    ]);
  });

  it("trap 40: sends no empty text", () => {
    const messages = [user("a"), assistant("", { calls: [PARIS] }), toolResult(PARIS.id, "")];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toEqual([
      { role: "user", content: [textBlock("a")] },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: PARIS.id, name: "get_weather", input: { city: "Paris" } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: PARIS.id }] },
    ]);
  });

  it("trap 44: gives calls whose IDs repeat, collide or are too long IDs of their own, the same each time", () => {
    const ids = ["a.b", "a_b", "a.b", "x".repeat(70), ""];
    const messages = ids.flatMap((id) => [
      user("q"),
      assistant(undefined, { calls: [{ id, name: "f" }] }),
      toolResult(id, "r"),
    ]);
    const turns = messagesOf(request({ messages })) as {
      content: { type: string; id?: string; tool_use_id?: string }[];
    }[];
    const blocks = turns.flatMap(({ content }) => content);
    const opened = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    expect(new Set(opened).size).toBe(ids.length);
    for (const id of opened) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(opened.slice(0, 1)).toEqual(["a_b"]);
    expect(blocks.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id)).toEqual(opened);
    expect(messagesOf(request({ messages }))).toEqual(turns);
  });

  it.each([
    ["{}", ""],
    ["{}", " "],
    ['{"arguments":"[1]"}', "[1]"],
    ['{"arguments":"{\\"a\\":"}', '{"a":'],
    ['{"arguments":"null"}', "null"],
    ['{"n":12345678901234567890}', '{"n": 12345678901234567890}'],
  ])("traps 45 and 46: sends %s for the arguments %s", (expected, written) => {
    const messages = [
      user("a"),
      assistant(undefined, { calls: [{ ...PARIS, argumentsJson: written }] }),
      toolResult(PARIS.id, "r"),
    ];
    expect(translate(request({ messages, tools: [WEATHER] }), budgetModel()).body.toString()).toContain(
      `"input":${expected}}`,
    );
  });

  it("trap 48: declares a picture by its bytes, whatever its type is said to be", () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
    const webp = Buffer.from("RIFF....WEBPVP8 ");
    const wrong = {
      kind: { case: "image", value: { source: { case: "data", value: jpeg }, mediaType: "image/png" } },
    } as const;
    expect(messagesOf(request({ messages: [user([wrong, image(webp), image(Buffer.from("GIF89a"))])] }))).toMatchObject(
      [{ content: ["image/jpeg", "image/webp", "image/gif"].map((media_type) => ({ source: { media_type } })) }],
    );
  });

  it("sends the address of a document, for models that read addresses", () => {
    const asked = request({ messages: [user([file({ source: { case: "url", value: "https://a.test/b.pdf" } })])] });
    expect(messagesOf(asked)).toEqual([
      { role: "user", content: [{ type: "document", source: { type: "url", url: "https://a.test/b.pdf" } }] },
    ]);
    expect(() => messagesOf(asked, budgetModel({ imageUrls: false }))).toThrow("messages[0].parts[0]: must hold");
  });

  it("sends PDF and text documents", () => {
    const parts = [
      file({ source: { case: "data", value: Buffer.from("%PDF-1.7") }, name: "a.pdf" }),
      file({ source: { case: "data", value: Buffer.from("Grüße") }, mediaType: "text/plain; charset=utf-8" }),
    ];
    expect(messagesOf(request({ messages: [user(parts)] }))).toEqual([
      {
        role: "user",
        content: [
          {
            type: "document",
            title: "a.pdf",
            source: { type: "base64", media_type: "application/pdf", data: Buffer.from("%PDF-1.7").toString("base64") },
          },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "Grüße" } },
        ],
      },
    ]);
  });

  it("trap 50: sends a picture inside a tool result", () => {
    const messages = [
      user("a"),
      assistant(undefined, { calls: [PARIS] }),
      toolResult(PARIS.id, [text("see"), image(PNG)]),
    ];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toMatchObject([
      {},
      {},
      { content: [{ type: "tool_result", content: [textBlock("see"), { type: "image" }] }] },
    ]);
  });

  it("trap 51: shows the model's own pictures in the user's next turn, and lists them when there is none", () => {
    const answer = assistant([text("Here."), image(PNG)]);
    expect(messagesOf(request({ messages: [user("draw"), answer, user("bluer")] }))).toMatchObject([
      {},
      { role: "assistant", content: [textBlock("Here.")] },
      { role: "user", content: [{ type: "image" }, textBlock("bluer")] },
    ]);
    const last = translate(request({ messages: [user("draw"), answer] }), budgetModel());
    expect(omittedOf(last)).toEqual(["messages[1].parts[1]"]);
  });

  it("trap 52: trims the beginning of an answer that the model continues", () => {
    const messages = [user("a"), assistant("Once \n", { reasoning: [SIGNED] })];
    expect(messagesOf(request({ messages }))).toEqual([
      { role: "user", content: [textBlock("a")] },
      { role: "assistant", content: [textBlock("Once")] },
    ]);
  });

  it("sends a refusal as the text that it was", () => {
    const messages = [user("a"), assistant([{ kind: { case: "refusal", value: "No." } }]), user("b")];
    expect(messagesOf(request({ messages }))).toMatchObject([
      {},
      { role: "assistant", content: [textBlock("No.")] },
      {},
    ]);
  });

  it("keeps texts, reasoning and calls of an answer in their order", () => {
    const parts = [call(PARIS), text("a"), reasoning(SIGNED), text("b"), call({ ...PARIS, id: "toolu_2" })];
    const results = { role: Role.TOOL, parts: [result("toolu_2", "2"), result(PARIS.id, "1")] };
    const asked = request({ messages: [user("q"), assistant(parts), results], tools: [WEATHER] });
    expect(messagesOf(asked, adaptiveModel())).toMatchObject([
      {},
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: PARIS.id },
          textBlock("a"),
          { type: "thinking", thinking: SIGNED.text, signature: SIGNED.signature },
          textBlock("b"),
          { type: "tool_use", id: "toolu_2" },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: PARIS.id, content: "1" },
          { type: "tool_result", tool_use_id: "toolu_2", content: "2" },
        ],
      },
    ]);
  });

  it("marks the result of a failed tool", () => {
    const failed = { role: Role.TOOL, parts: [result(PARIS.id, "no such city", true)] };
    const asked = request({
      messages: [user("q"), assistant(undefined, { calls: [PARIS] }), failed],
      tools: [WEATHER],
    });
    expect(messagesOf(asked)).toMatchObject([
      {},
      {},
      { content: [{ type: "tool_result", tool_use_id: PARIS.id, content: "no such city", is_error: true }] },
    ]);
  });
});
