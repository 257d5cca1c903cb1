import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { CitationSchema } from "../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, MAX_CITATIONS } from "../../src/core/chunks.ts";

it("a choice cites a limited number of sources", () => {
  const chunks: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  const citation = create(CitationSchema, { source: { case: "url", value: "https://example.com" } });
  for (let cited = 0; cited < MAX_CITATIONS + 5; cited++) writer.cite(citation, chunks);
  expect(chunks.filter(({ event }) => event.case === "partDelta")).toHaveLength(MAX_CITATIONS);
});
