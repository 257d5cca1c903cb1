import { KeyCapability } from "../../gen/parley/v1/key_pb.js";

/** Display names of the capabilities. */
export const CAPABILITY_NAMES: readonly (readonly [capability: KeyCapability, name: string])[] = [
  [KeyCapability.CHAT, "Chat"],
  [KeyCapability.IMAGES, "Image generation"],
  [KeyCapability.EMBEDDINGS, "Embeddings"],
];
