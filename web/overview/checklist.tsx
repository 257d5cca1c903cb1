import { useState } from "react";
import { CircleCheck, Circle } from "lucide-react";
import type { SetupChecklist } from "../../gen/parley/console/v1/overview_pb.js";
import { Button } from "../components/button.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";

interface Step {
  readonly title: string;
  readonly text: string;
  readonly isDone: boolean;
  /** Page on which to do the step; undefined for a step in the configuration. */
  readonly link?: readonly [path: string, text: string];
}

/** Steps of the first day, until all are done or the reader hides them in this browser. */
export function Checklist({ state }: { readonly state: SetupChecklist }) {
  const [isHidden, setHidden] = useState(readHidden);
  const steps = stepsOf(state);
  const left = steps.filter(({ isDone }) => !isDone).length;
  if (isHidden || left === 0) return null;
  const hide = (): void => {
    storeHidden();
    setHidden(true);
  };
  return (
    <Panel
      title="First steps"
      description={`${steps.length - left} of ${steps.length} done.`}
      actions={
        <Button look="quiet" size="small" className="-my-1 -mr-3 max-sm:-ml-3" onClick={hide}>
          Hide these steps
        </Button>
      }
    >
      <ul className="grid gap-x-6 gap-y-4 sm:grid-cols-2 xl:grid-cols-4">
        {steps.map(({ title, text, isDone, link }) => (
          <li key={title} className="flex gap-3">
            {isDone ? (
              <CircleCheck aria-hidden className="mt-0.5 size-5 shrink-0 text-good" />
            ) : (
              <Circle aria-hidden className="mt-0.5 size-5 shrink-0 text-edge" />
            )}
            <div className="min-w-0 text-sm">
              <p className="font-medium">
                <span className="sr-only">{isDone ? "Done: " : "To do: "}</span>
                {title}
              </p>
              <p className="mt-0.5 text-muted">{text}</p>
              {!isDone && link && (
                <p className="mt-1">
                  <TextLink to={link[0]}>{link[1]}</TextLink>
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
      <p className="mt-5 text-sm text-muted">{BACKUPS[state.database] ?? BACKUPS["sqlite"]}</p>
    </Panel>
  );
}

function stepsOf({ providerConnected, keyCreated, requestMade, addressSecured }: SetupChecklist): readonly Step[] {
  return [
    {
      title: "Connect a provider",
      text: "With its API key. Until then the built-in simulator answers.",
      isDone: providerConnected,
      link: [PATHS.adminConfiguration, "Providers & models"],
    },
    { title: "Create a key", text: "For each application.", isDone: keyCreated, link: [PATHS.keys, "Keys"] },
    {
      title: "Send the first request",
      text: "With a key, or in the playground.",
      isDone: requestMade,
      link: [PATHS.playground, "Playground"],
    },
    {
      title: "Use HTTPS",
      text: "Set http.public_url to the address of a proxy with TLS, or http.tls.",
      isDone: addressSecured,
      link: [PATHS.adminSettings, "Settings"],
    },
  ];
}

const BACKUPS: Readonly<Record<string, string>> = {
  sqlite:
    "Back up the database, parley.db in data_dir: it has keys, accounts and usage. Use Litestream, or npx parley backup FILE.",
  postgres:
    "Back up the PostgreSQL database: it has keys, accounts and usage. Use pg_dump, or its continuous archiving.",
};

const STORED_AS = "parley-hide-first-steps";

function readHidden(): boolean {
  try {
    return localStorage.getItem(STORED_AS) === "yes";
  } catch {
    return false;
  }
}

function storeHidden(): void {
  try {
    localStorage.setItem(STORED_AS, "yes");
  } catch {
    // Storage is not available: the steps are hidden until the page is loaded again.
  }
}
