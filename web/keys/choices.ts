import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AttributionLimitsSchema,
  BudgetPeriod,
  type CapabilitySelectionSchema,
  type Key,
} from "../../gen/parley/console/v1/key_pb.js";
import type { KeyCapability, ModelSelectionSchema, UsageLimitsSchema } from "../../gen/parley/v1/key_pb.js";
import { failureOfField } from "../api/failure-of-field.ts";
import type { Written } from "../components/form.tsx";
import { parseUsd } from "../format/money.ts";
import { parseCount } from "../format/number.ts";
import { ATTRIBUTION_BUDGETS, ATTRIBUTION_COUNTS, PERIOD_FIELD, REQUIRE_FIELD } from "./attribution-limits.tsx";
import { BUDGET_FIELD, LIMIT_FIELDS } from "./limits.tsx";

/** Values of a key's form, as fields of the create and update requests. */
export interface Choices {
  readonly name: string;
  readonly models: MessageInitShape<typeof ModelSelectionSchema>;
  readonly capabilities: MessageInitShape<typeof CapabilitySelectionSchema>;
  readonly limits: MessageInitShape<typeof UsageLimitsSchema>;
  readonly attributionLimits: MessageInitShape<typeof AttributionLimitsSchema>;
  /** Absent if the form does not have the field. */
  readonly storeContent?: boolean;
}

/** Field of the storage of prompts and answers, which only administrators have. */
export const STORE_CONTENT = "store_content";

/** Fields of a key's form that display their own errors. */
export const CHOICE_FIELDS = [
  "name",
  "models",
  "models.ids",
  "capabilities",
  STORE_CONTENT,
  ...LIMIT_FIELDS.map(([name]) => name),
  BUDGET_FIELD,
  ...[...ATTRIBUTION_COUNTS, ...ATTRIBUTION_BUDGETS].map(([name]) => name),
];

/** Reads a key's form. Throws a field error for an invalid number; the service validates the rest. */
export function readChoices(form: Written): Choices {
  const isAll = form.get("models") === "all";
  const ids = form.all("model");
  // The service rejects an empty selection too, but its error text does not fit this form.
  if (!isAll && ids.length === 0) throw failureOfField("models", "select at least one model, or all models");
  const capabilities = form.all("capability").map((value): KeyCapability => Number(value));
  if (capabilities.length === 0) throw failureOfField("capabilities", "select at least one");
  return {
    name: form.get("name"),
    models: isAll ? { all: true } : { ids },
    capabilities: { capabilities },
    limits: readLimits(form),
    attributionLimits: readAttributionLimits(form),
    ...readStoreContent(form),
  };
}

/** Reads the limits of end users and sessions of a form. Throws a field error for an invalid number. */
function readAttributionLimits(form: Written): Choices["attributionLimits"] {
  const numbers = Object.fromEntries([
    ...readEach(form, ATTRIBUTION_COUNTS, COUNT),
    ...readEach(form, ATTRIBUTION_BUDGETS, AMOUNT),
  ]);
  return {
    ...numbers,
    ...("endUserBudgetMicroUsd" in numbers && { endUserBudgetPeriod: Number(form.get(PERIOD_FIELD)) as BudgetPeriod }),
    requireEndUser: form.get(REQUIRE_FIELD) !== "",
  };
}

/** An unchecked checkbox has no value, so a hidden field beside it tells whether the form has the checkbox. */
function readStoreContent(form: Written): Pick<Choices, "storeContent"> {
  const values = form.all(STORE_CONTENT);
  return values.length === 0 ? {} : { storeContent: values.includes("yes") };
}

/** Reads the limits of a form. Throws a field error for an invalid number. */
export function readLimits(form: Written): Choices["limits"] {
  const counts = readEach(form, LIMIT_FIELDS, COUNT);
  const budget = readNumber(form, BUDGET_FIELD, AMOUNT);
  return { ...Object.fromEntries(counts), ...(budget !== undefined && { monthlyBudgetMicroUsd: budget }) };
}

/** Whether the selected models differ from the key's. An unchanged selection keeps removed models allowed. */
export function changesModels({ all = false, ids = [] }: Choices["models"], key: Key): boolean {
  const known = key.models?.ids ?? [];
  return all !== (key.models?.all ?? false) || ids.length !== known.length || ids.some((id) => !known.includes(id));
}

interface Reading {
  readonly parse: (text: string) => bigint | undefined;
  readonly what: string;
}

const COUNT: Reading = { parse: parseCount, what: "must be a whole number, such as 60" };
const AMOUNT: Reading = { parse: parseUsd, what: "must be an amount, such as 25 or 7.50" };

type NumberField = readonly [name: string, label: string, field: string];

/** Reads an amount of money; undefined for an empty field. */
export function readAmount(form: Written, name: string): bigint | undefined {
  return readNumber(form, name, AMOUNT);
}

/** Reads the fields that are not empty. */
function readEach(form: Written, fields: readonly NumberField[], reading: Reading): [field: string, value: bigint][] {
  return fields.flatMap(([name, , field]) => {
    const value = readNumber(form, name, reading);
    return value === undefined ? [] : [[field, value]];
  });
}

function readNumber(form: Written, name: string, { parse, what }: Reading): bigint | undefined {
  const text = form.get(name).trim();
  if (text === "") return undefined;
  const value = parse(text);
  if (value === undefined) throw failureOfField(name, what);
  return value;
}
