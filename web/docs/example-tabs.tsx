import { Tabs } from "@base-ui/react/tabs";
import { CopyButton } from "../components/copy-button.tsx";
import { TabList } from "../components/tab-list.tsx";
import type { Example } from "./examples.ts";

/** The same request in several languages. */
export function ExampleTabs({ about, examples }: { readonly about: string; readonly examples: readonly Example[] }) {
  return (
    <Tabs.Root defaultValue={examples[0]!.name} className="rounded-xl border border-line bg-surface p-4">
      <TabList label={`Examples: ${about}`} names={examples.map(({ name }) => name)} className="print:hidden" />
      {examples.map(({ name, needs, text }) => (
        <Tabs.Panel key={name} value={name} className="mt-2">
          <div className="flex items-center justify-between gap-4 py-1.5">
            <p className="text-sm text-muted">{needs}</p>
            <span className="print:hidden">
              <CopyButton text={text} what={`the ${name} example: ${about}`} />
            </span>
          </div>
          <pre
            tabIndex={0}
            className="max-h-96 overflow-auto rounded-lg border border-line bg-sunken p-4 font-mono text-[0.8125rem] leading-relaxed print:max-h-none print:whitespace-pre-wrap"
          >
            <code>{text}</code>
          </pre>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}
