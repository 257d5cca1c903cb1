import { invalidField } from "../../core/failure.ts";

const DEFAULT_SIZE = 50;
const MAX_SIZE = 100;

/** How many rows a page has that was asked for with `limit`. Throws `invalid_request` for more than 100. */
export function pageSize(limit: number): number {
  if (limit >= 0 && limit <= MAX_SIZE) return limit === 0 ? DEFAULT_SIZE : limit;
  throw invalidField("limit", `must be 1 to ${MAX_SIZE}`);
}
