import type { SavedFilter as SavedFilterMessage } from "../../../gen/parley/console/v1/request_pb.js";
import type { SavedFilter } from "../../access/saved-filters.ts";
import { invalidField } from "../../core/failure.ts";

const MAX_NAME_CHARS = 60;
const MAX_QUERY_CHARS = 2_000;

/** Reads a filter to save. Throws `invalid_request`. */
export function readSavedFilter(filter: SavedFilterMessage | undefined): SavedFilter {
  const { name = "", query = "" } = filter ?? {};
  if (query.length > MAX_QUERY_CHARS || !/^[\x21-\x7e]*$/.test(query))
    throw invalidField("filter.query", `must be the query of an address, at most ${MAX_QUERY_CHARS} characters`);
  return { name: readName("filter.name", name), query };
}

/** Reads the name of a saved filter. Throws `invalid_request`. */
export function readName(field: string, text: string): string {
  const name = text.trim();
  if (name === "") throw invalidField(field, "is required");
  if (name.length > MAX_NAME_CHARS || /\p{Cc}/u.test(name) || !name.isWellFormed())
    throw invalidField(field, `must be at most ${MAX_NAME_CHARS} characters without control characters`);
  return name;
}
