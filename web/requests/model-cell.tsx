import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { ENTRANCES } from "./entrances.ts";

/** The model that served the request, the requested one if it was another, and the endpoint. */
export function ModelCell({ request }: { readonly request: LoggedRequest }) {
  const { requestedModel, servedModel, entrance, streamed, attempts } = request;
  const isOther = servedModel !== "" && servedModel !== requestedModel;
  // Attempts have the names of targets, never of a route: another served model of a route is no fallback.
  const isFallback = isOther && attempts.some(({ model }) => model === requestedModel);
  const name = servedModel || requestedModel || "Unknown";
  return (
    <span className="lg:flex lg:items-baseline lg:gap-2" title={name}>
      <bdi className="line-clamp-2 font-medium lg:line-clamp-1 lg:max-w-full lg:shrink-0">{name}</bdi>
      {isFallback && (
        <span className="line-clamp-2 text-xs text-warn lg:line-clamp-1">
          <span aria-hidden>↪ </span>fallback for <bdi>{requestedModel}</bdi>
        </span>
      )}
      {isOther && !isFallback && (
        <span className="line-clamp-2 text-xs text-muted lg:line-clamp-1">
          asked for <bdi>{requestedModel}</bdi>
        </span>
      )}
      {/* If it does not fit completely, it wraps to a second line, which is clipped. */}
      <span className="text-xs text-muted max-lg:block lg:flex lg:h-4 lg:min-w-0 lg:flex-1 lg:flex-wrap lg:overflow-hidden">
        <span aria-hidden className="w-0 max-lg:hidden">
          {"\u200b"}
        </span>
        <span className="whitespace-nowrap">
          {ENTRANCES[entrance] ?? entrance}
          {streamed && ", streamed"}
        </span>
      </span>
    </span>
  );
}
