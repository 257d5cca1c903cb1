import { useState } from "react";
import page from "../../docs/clients.md?raw";
import { CopyButton } from "../components/copy-button.tsx";
import { SelectField } from "../components/field.tsx";
import { Words } from "../components/prose.tsx";
import { type Client, fillIn, readClients, type Use } from "./snippets.ts";

const STORED_AS = "parley-client";

/** Shows the settings of a client, which this browser remembers, with the values of a key. */
export function ClientSettings({ use }: { readonly use: Use }) {
  const [chosen, setChosen] = useState(readChoice);
  const clients = readClients(fillIn(page, use));
  const client = clients.find(({ name }) => name === chosen) ?? clients[0]!;
  const choose = (name: string): void => {
    setChosen(name);
    storeChoice(name);
  };
  return (
    <section data-testid="client" className="mt-6 space-y-4">
      <SelectField label="Set up a client" value={client.name} onChange={(event) => choose(event.target.value)}>
        {[...new Set(clients.map(({ group }) => group))].map((group) => (
          <optgroup key={group} label={group}>
            {clients
              .filter((each) => each.group === group)
              .map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
          </optgroup>
        ))}
      </SelectField>
      <Steps key={client.name} client={client} />
    </section>
  );
}

function Steps({ client: { name, steps, notes } }: { readonly client: Client }) {
  return (
    <>
      {steps.map(({ where, code }, index) => (
        <div key={where}>
          <div className="flex items-center justify-between gap-4 pb-1.5">
            <p className="min-w-0 text-sm wrap-anywhere">
              <Words text={where} />
            </p>
            <CopyButton
              text={code}
              what={`the code for ${name}${steps.length > 1 ? `, ${index + 1} of ${steps.length}` : ""}`}
            />
          </div>
          <pre className="rounded-lg border border-line bg-sunken p-4 font-mono text-[0.8125rem] leading-relaxed wrap-anywhere whitespace-pre-wrap">
            <code>{code}</code>
          </pre>
        </div>
      ))}
      {notes.map((note) => (
        <p key={note} className="text-sm wrap-anywhere text-muted">
          <Words text={note} />
        </p>
      ))}
    </>
  );
}

function readChoice(): string | undefined {
  try {
    return localStorage.getItem(STORED_AS) ?? undefined;
  } catch {
    return undefined;
  }
}

function storeChoice(name: string): void {
  try {
    localStorage.setItem(STORED_AS, name);
  } catch {
    // Storage is not available: the choice applies until the dialog is closed.
  }
}
