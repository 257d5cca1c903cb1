import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Model } from "../../../gen/parley/v1/model_pb.js";

/** Limit of models in a page. */
const MAX_PAGE = 1000;

/** A model in this format. */
export function toModelInfo({ id, createTime, contextWindow, maxOutputTokens }: Model): object {
  return {
    type: "model",
    id,
    display_name: id,
    created_at: (createTime === undefined ? new Date(0) : timestampDate(createTime))
      .toISOString()
      .replace(".000Z", "Z"),
    max_input_tokens: contextWindow ?? null,
    max_tokens: maxOutputTokens ?? null,
  };
}

/** A page of models: `limit`, and `after_id` or `before_id`. Without a limit it has all of them. */
export function toModelPage(models: readonly Model[], query: URLSearchParams): object {
  const limit = limitOf(query.get("limit"));
  const at = (name: string): number => models.findIndex(({ id }) => id === query.get(name));
  let page = models;
  let hasMore: boolean;
  if (query.has("before_id")) {
    const before = models.slice(0, Math.max(at("before_id"), 0));
    page = before.slice(-limit);
    hasMore = page.length < before.length;
  } else {
    const after = query.has("after_id")
      ? models.slice(at("after_id") < 0 ? models.length : at("after_id") + 1)
      : models;
    page = after.slice(0, limit);
    hasMore = page.length < after.length;
  }
  return {
    data: page.map(toModelInfo),
    has_more: hasMore,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

function limitOf(text: string | null): number {
  const limit = Number(text ?? MAX_PAGE);
  return Number.isInteger(limit) && limit >= 1 ? Math.min(limit, MAX_PAGE) : MAX_PAGE;
}
