import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { CacheMarks } from "./cache-marks.ts";
import type { ToolCallIds } from "./tool-call-ids.ts";

/** State of one translation: the request, its target model, and the omissions and cache marks collected so far. */
export interface TranslationContext {
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  readonly marks: CacheMarks;
  readonly ids: ToolCallIds;
}
