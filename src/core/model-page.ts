import type { ListModelsRequest } from "../../gen/parley/v1/model_pb.js";
import { invalidField } from "./failure.ts";
import { type ListedModel, makes } from "./model.ts";

/** Default and largest number of models in a page. */
const DEFAULT_PAGE = 100;
export const MAX_PAGE = 1_000;

/** The requested page of `models`, which are in the order of the registry. Throws `invalid_request`. */
export function pageOfModels<M extends Pick<ListedModel, "id"> & Parameters<typeof makes>[0]>(
  models: readonly M[],
  { pageSize, pageToken, outputModalities }: ListModelsRequest,
): { readonly models: readonly M[]; readonly nextPageToken: string } {
  if (pageSize < 0) throw invalidField("page_size", "must not be negative");
  // A filter may name the same modality a hundred thousand times.
  const asked = [...new Set(outputModalities)];
  const found = models.filter((model) => asked.every((one) => makes(model, one)));
  // The token is the ID of the first model of its page: pages stay where they are when other models come and go.
  const from = pageToken === "" ? 0 : found.findIndex(({ id }) => id === pageToken);
  if (from < 0) throw invalidField("page_token", "is not of a previous page, or its model no longer exists");
  const to = from + Math.min(pageSize === 0 ? DEFAULT_PAGE : pageSize, MAX_PAGE);
  return { models: found.slice(from, to), nextPageToken: found[to]?.id ?? "" };
}
