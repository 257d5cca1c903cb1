import { type Key } from "../../gen/parley/console/v1/key_pb.js";
import { KeyCapability } from "../../gen/parley/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import type { Draft } from "./draft.ts";

/** The key and the model of a request. */
export interface Setup {
  readonly key: Key;
  /** Models that the key may use. */
  readonly usable: readonly ModelSetting[];
  /** Undefined if the key may use none. */
  readonly model: ModelSetting | undefined;
  /** Reason why the model differs from the selected one. */
  readonly notice: string | undefined;
}

export interface SetupOptions {
  readonly keys: readonly [Key, ...Key[]];
  readonly models: readonly ModelSetting[];
  readonly draft: Pick<Draft, "keyId" | "chosenKeyId" | "chosenModel">;
}

/**
 * Resolves the selection to a key and a model that work together. A selected key is kept. Otherwise a key is chosen
 * that may use the selected model, if there is one. An unusable model is replaced, with a notice.
 */
export function resolveSetup({ keys, models, draft }: SetupOptions): Setup {
  const wanted = models.find(({ id }) => id === draft.chosenModel);
  const key =
    keys.find(({ id }) => id === draft.chosenKeyId) ??
    (wanted && findKeyFor(wanted, keys, draft.keyId)) ??
    keys.find(({ id }) => id === draft.keyId) ??
    keys[0];
  const usable = models.filter(({ id }) => mayUse(key, id));
  const model = usable.find(({ id }) => id === draft.chosenModel) ?? usable.find(({ images }) => !images) ?? usable[0];
  const isReplaced = draft.chosenModel !== "" && model?.id !== draft.chosenModel;
  const notice = isReplaced ? describeReplacement({ keys, key, model, wanted, name: draft.chosenModel }) : undefined;
  return { key, usable, model, notice };
}

/** Whether the key may use the model. */
export function mayUse({ models }: Key, id: string): boolean {
  return models?.all === true || models?.ids.includes(id) === true;
}

/**
 * Returns the current key if it may use the model, otherwise one with all needed capabilities, otherwise any that may
 * use the model.
 */
function findKeyFor(model: ModelSetting, keys: readonly Key[], currentId: string): Key | undefined {
  const able = keys.filter((key) => mayUse(key, model.id));
  const needed = model.images ? [KeyCapability.CHAT, KeyCapability.IMAGES] : [KeyCapability.CHAT];
  const isWhole = ({ capabilities }: Key): boolean => needed.every((each) => capabilities.includes(each));
  return able.find(({ id }) => id === currentId) ?? able.find(isWhole) ?? able[0];
}

interface Replacement {
  readonly keys: readonly Key[];
  readonly key: Key;
  readonly model: ModelSetting | undefined;
  readonly wanted: ModelSetting | undefined;
  readonly name: string;
}

function describeReplacement({ keys, key, model, wanted, name }: Replacement): string {
  const instead = model === undefined ? "" : ` Using ${model.id} instead.`;
  if (wanted === undefined) return `Model ${name} does not exist.${instead}`;
  if (keys.some((each) => mayUse(each, name))) return `The key “${key.name}” may not use ${name}.${instead}`;
  return `None of your active keys may use ${name}.${instead}`;
}
