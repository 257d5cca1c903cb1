import { create } from "@bufbuild/protobuf";
import { type LabelRequirements, LabelRequirementsSchema } from "../../gen/parley/v1/label_pb.js";
import { invalidField } from "../core/failure.ts";
import { valuesProblem } from "../core/labels.ts";

/** Request headers with the labels that a model must have; each has the permitted values, separated by commas. */
export const LABEL_HEADERS = { region: "parley-require-region", retention: "parley-require-retention" } as const;

/** Reads the labels that headers require; undefined without any. Throws `invalid_request` that names the header. */
export function readRequiredLabels(valueOf: (name: string) => string | undefined): LabelRequirements | undefined {
  const regions = readValues(LABEL_HEADERS.region, valueOf);
  const retentions = readValues(LABEL_HEADERS.retention, valueOf);
  if (regions.length + retentions.length === 0) return undefined;
  return create(LabelRequirementsSchema, { regions, retentions });
}

function readValues(name: string, valueOf: (name: string) => string | undefined): string[] {
  const text = valueOf(name);
  if (text === undefined) return [];
  const values = text.split(",").map((value) => value.trim());
  const problem = valuesProblem(values);
  if (problem !== undefined) throw invalidField(name, problem);
  return values;
}

/** Adds what headers require to a request. Throws `invalid_request` when the request requires labels in its own field, too. */
export function addRequiredLabels(
  request: { requiredLabels?: LabelRequirements | undefined },
  labels: LabelRequirements | undefined,
): void {
  if (labels === undefined) return;
  if (request.requiredLabels !== undefined)
    throw invalidField("required_labels", "must not be sent beside its headers");
  request.requiredLabels = labels;
}
