/**
 * Client of Parley, a completion gateway, over gRPC. The messages are those of the contract `parley.v1`.
 *
 * @module
 */
export { Code } from "@connectrpc/connect";
export { CompletionAccumulator } from "./accumulator.js";
export type { CallOptions } from "./calls.js";
export { type CompletionRequestInit, ParleyClient, type ParleyClientOptions } from "./client.js";
export {
  imagePart,
  systemText,
  textDelta,
  textInputs,
  textOf,
  textPart,
  toolCallsOf,
  toolResult,
  userText,
} from "./content.js";
export { type ErrorReasonName, type FieldViolation, ParleyError } from "./errors.js";
export * from "./gen/parley/v1/completion_pb.js";
export * from "./gen/parley/v1/embedding_pb.js";
export * from "./gen/parley/v1/error_pb.js";
export * from "./gen/parley/v1/key_pb.js";
export * from "./gen/parley/v1/message_pb.js";
export * from "./gen/parley/v1/label_pb.js";
export * from "./gen/parley/v1/modality_pb.js";
export * from "./gen/parley/v1/model_pb.js";
export * from "./gen/parley/v1/reasoning_pb.js";
export * from "./gen/parley/v1/report_pb.js";
export * from "./gen/parley/v1/tool_pb.js";
export * from "./gen/parley/v1/usage_pb.js";
export type { CompletionStream } from "./stream.js";
