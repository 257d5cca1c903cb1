import type { IncomingHttpHeaders } from "node:http";
import { create } from "@bufbuild/protobuf";
import { type LabelRequirements, LabelRequirementsSchema } from "../../../gen/parley/v1/model_pb.js";
import { invalidField } from "../../core/failure.ts";
import { valuesProblem } from "../../core/labels.ts";

/** Request headers with the labels that a model must have; each has the permitted values, separated by commas. */
export const LABEL_HEADERS = { region: "parley-require-region", retention: "parley-require-retention" } as const;

/** Reads the labels that a request requires; undefined without any. Throws `invalid_request` that names the header. */
export function readRequiredLabels(headers: IncomingHttpHeaders): LabelRequirements | undefined {
  const regions = readValues(headers, LABEL_HEADERS.region);
  const retentions = readValues(headers, LABEL_HEADERS.retention);
  if (regions.length + retentions.length === 0) return undefined;
  return create(LabelRequirementsSchema, { regions, retentions });
}

function readValues(headers: IncomingHttpHeaders, name: string): string[] {
  const text = headers[name]?.toString();
  if (text === undefined) return [];
  const values = text.split(",").map((value) => value.trim());
  const problem = valuesProblem(values);
  if (problem !== undefined) throw invalidField(name, problem);
  return values;
}
