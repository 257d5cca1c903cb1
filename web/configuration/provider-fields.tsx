import { useState } from "react";
import type { ProviderPreset } from "../../gen/parley/console/v1/configuration_pb.js";
import { CheckField, SelectField, TextField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import type { Problem } from "./problems.ts";
import { OTHER } from "./provider-draft.ts";
import { YamlField } from "./yaml-field.tsx";

const DIALECTS = [
  ["openai", "OpenAI Chat Completions, as most services and servers"],
  ["openai-responses", "OpenAI Responses"],
  ["anthropic", "Anthropic Messages"],
  ["gemini", "Gemini"],
  ["bedrock-converse", "Bedrock Converse"],
] as const;

interface ProviderFieldsProps {
  readonly presets: readonly ProviderPreset[];
  /** Whether the operator allows private addresses. */
  readonly allowsPrivate: boolean;
  readonly errorOf: (field: string) => string | undefined;
  /** Problems of the settings in YAML. */
  readonly moreProblems: readonly Problem[];
  /** Names that are taken. */
  readonly taken: ReadonlySet<string>;
}

/** Fields of a provider: service, name, address, API key. */
export function ProviderFields({ presets, allowsPrivate, errorOf, moreProblems, taken }: ProviderFieldsProps) {
  const usable = presets.filter(({ isLocal }) => allowsPrivate || !isLocal);
  const [service, setService] = useState(usable.find(({ name }) => name === "openai")?.name ?? OTHER);
  // Undefined: the name of the service.
  const [typedName, setTypedName] = useState<string>();
  const [baseUrl, setBaseUrl] = useState("");
  const preset = presets.find(({ name }) => name === service);
  const isCloud = preset !== undefined && preset.host !== "";
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField label="Service" name="preset" value={service} onChange={(event) => setService(event.target.value)}>
          {usable.map(({ name, isLocal }) => (
            <option key={name} value={name}>
              {isLocal ? `${name} (on this machine)` : name}
            </option>
          ))}
          <option value={OTHER}>Other</option>
        </SelectField>
        <TextField
          label="Name"
          name="name"
          autoComplete="off"
          spellCheck={false}
          value={typedName ?? freeName(service, taken)}
          onChange={(event) => setTypedName(event.target.value)}
          hint="Models are requested as NAME/MODEL."
          error={errorOf("name")}
        />
      </div>
      {preset === undefined && (
        <SelectField label="Wire format" name="dialect">
          {DIALECTS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </SelectField>
      )}
      <TextField
        label={preset === undefined || preset.baseUrl === "" ? "Base URL" : "Base URL (optional)"}
        name="base_url"
        type="url"
        autoComplete="off"
        spellCheck={false}
        placeholder={preset?.baseUrl || "https://api.example.com/v1"}
        value={baseUrl}
        onChange={(event) => setBaseUrl(event.target.value)}
        error={errorOf("base_url")}
      />
      {allowsPrivate && baseUrl.trim() !== "" && (
        <CheckField label="The address is in a private network, or on this machine" name="private" value="yes" />
      )}
      <TextField
        label={preset?.needsCredential === true && !isCloud ? "API key" : "API key (if it needs one)"}
        name="api_key"
        type="password"
        autoComplete="off"
        hint={`Encrypted, and never shown again.${preset?.credentialName ? ` The service calls it ${preset.credentialName}.` : ""}`}
        error={errorOf("api_keys")}
      />
      {isCloud && (
        <p className="text-sm text-muted">
          {preset.name} needs more settings, such as its region: see docs/providers/{preset.name}.md.
        </p>
      )}
      <Fold title="More settings" summary="None" isOpen={isCloud || moreProblems.length > 0}>
        <YamlField
          label="Settings (YAML)"
          name="more"
          rows={4}
          hint="As below the provider's name in the configuration file."
          problems={moreProblems}
        />
      </Fold>
    </>
  );
}

/** The service's name, with a number if there is such a provider. */
function freeName(service: string, taken: ReadonlySet<string>): string {
  if (!taken.has(service)) return service;
  let number = 2;
  while (taken.has(`${service}-${number}`)) number += 1;
  return `${service}-${number}`;
}
