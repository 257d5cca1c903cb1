import { Tabs } from "@base-ui/react/tabs";

interface TabListProps {
  /** Accessible name, if no heading names the tabs. */
  readonly label?: string;
  /** Labels of the tabs, also their values. */
  readonly names: readonly string[];
  readonly className?: string;
}

/** Tab bar of a `Tabs.Root`. */
export function TabList({ label, names, className = "" }: TabListProps) {
  return (
    <Tabs.List aria-label={label} className={`flex flex-wrap gap-1 ${className}`}>
      {names.map((name) => (
        <Tabs.Tab
          key={name}
          value={name}
          className="min-h-9 rounded-lg px-3 text-sm text-muted hover:bg-sunken hover:text-ink data-active:bg-accent-soft data-active:font-medium data-active:text-accent-strong"
        >
          {name}
        </Tabs.Tab>
      ))}
    </Tabs.List>
  );
}
