import { Tabs } from "@base-ui/react/tabs";

interface TabListProps {
  /** What the tabs are of, where nothing before them says it. */
  readonly label?: string;
  /** Also the tabs' values. */
  readonly names: readonly string[];
  readonly className?: string;
}

/** The tabs of a `Tabs.Root`, by which its panels are chosen. */
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
