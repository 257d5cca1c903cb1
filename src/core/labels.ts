import type { LabelRequirements as Message } from "../../gen/parley/v1/label_pb.js";
import { Failure, type FieldViolation } from "./failure.ts";

/** Labels of models that keys and requests can require: where a model answers, and how long its provider keeps requests. */
export const LABELS = ["region", "retention"] as const;

type Label = (typeof LABELS)[number];

/** The labels of a model, as the operator has set them. */
export type Labels = Readonly<Partial<Record<Label, string>>>;

/** The values of which a model must have one, by label. A label without values is not required. */
export type LabelRequirements = Readonly<Partial<Record<Label, readonly string[]>>>;

/** Limit of the values of one label, and of the tags of a key. */
const MAX_VALUES = 16;

/** The value of a label, or a tag of a key. */
const VALUE = /^[a-z0-9._-]{1,64}$/;

/** One required label. */
export interface Requirement {
  readonly by: "key" | "request";
  readonly label: Label;
  readonly values: readonly string[];
}

const NONE: readonly Requirement[] = [];

/** The requirements of the key, then those of the request. */
export function requirementsOf(
  key: LabelRequirements | undefined,
  request: Message | undefined,
): readonly Requirement[] {
  if (key === undefined && request === undefined) return NONE;
  const own = fromMessage(request);
  return [
    ...LABELS.flatMap((label) => toRequirement("key", label, key?.[label])),
    ...LABELS.flatMap((label) => toRequirement("request", label, own[label])),
  ];
}

function toRequirement(by: Requirement["by"], label: Label, values: readonly string[] = []): Requirement[] {
  return values.length === 0 ? [] : [{ by, label, values }];
}

/** The first requirement that a model with these labels does not meet. */
export function firstUnmet(labels: Labels, requirements: readonly Requirement[]): Requirement | undefined {
  return requirements.find(({ label, values }) => !values.includes(labels[label] ?? ""));
}

/** A requirement in words, such as `region eu or ch, as this API key requires`. */
export function describeRequirement({ by, label, values }: Requirement): string {
  const who = by === "key" ? "this API key" : "the request";
  return `${label} ${values.join(" or ")}, as ${who} requires`;
}

/** The failure of a request whose `field` names a model that a requirement of the key or the request rules out. */
export function ruledOut(field: string, id: string, requirement: Requirement): Failure {
  const description = `must be a model of ${describeRequirement(requirement)}; ${id} is not`;
  const violations: FieldViolation[] = [{ field, description }];
  const code = requirement.by === "key" ? "permission_denied" : "invalid_request";
  return new Failure(code, `${field}: ${description}.`, { violations });
}

/** Why `values` are invalid as values of a label or as tags; undefined when they are valid. */
export function valuesProblem(values: readonly string[]): string | undefined {
  if (values.length > MAX_VALUES) return `must have at most ${MAX_VALUES} values`;
  return values.every((value) => VALUE.test(value)) ? undefined : "must be 1 to 64 of a-z, 0-9, ., _ and - each";
}

/** Violations of the contract's field `required_labels`. */
export function labelViolations(message: Message | undefined): FieldViolation[] {
  if (message === undefined) return [];
  const { region = [], retention = [] } = fromMessage(message);
  return Object.entries({ regions: region, retentions: retention }).flatMap(([name, values]) => {
    const description = valuesProblem(values);
    return description === undefined ? [] : [{ field: `required_labels.${name}`, description }];
  });
}

/** Reads the contract's message. */
export function fromMessage(message: Message | undefined): LabelRequirements {
  return message === undefined ? {} : { region: message.regions, retention: message.retentions };
}
