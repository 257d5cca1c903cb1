import { describe } from "vitest";
import { BATCH_EMBED_CONTENTS, EMBED_CONTENT } from "./scenarios/callers/embed-content.ts";
import { EMBEDDINGS } from "./scenarios/callers/embeddings.ts";
import { nameOf, type Way } from "./scenarios/run.ts";
import { playAll } from "./scenarios/suite.ts";

const WAYS: readonly Way[] = [
  { entrance: "http", caller: EMBEDDINGS },
  { entrance: "http", caller: EMBEDDINGS, through: "front" },
  { entrance: "http", caller: EMBED_CONTENT },
  { entrance: "http", caller: BATCH_EMBED_CONTENTS },
  { entrance: "grpc", service: "embeddings" },
];

describe.each(WAYS.map((way) => ({ way, title: nameOf(way) })))("$title", ({ way }) => {
  playAll(way);
});
