import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { CacheMarks } from "./cache-marks.ts";
import type { ToolCallIds } from "./tool-call-ids.ts";

/** One translation under way: what is translated, for which model, and what is noted meanwhile. */
export interface TranslationContext {
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  readonly marks: CacheMarks;
  readonly ids: ToolCallIds;
}
