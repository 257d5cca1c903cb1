import { useState } from "react";
import { Switch } from "../components/switch.tsx";

interface ComparisonSwitchProps {
  readonly on: boolean;
  readonly onChange: (on: boolean) => void;
}

/** Switch of the comparison with the previous period. */
export function ComparisonSwitch({ on, onChange }: ComparisonSwitchProps) {
  return (
    <Switch on={on} onChange={onChange}>
      Compare with previous period
    </Switch>
  );
}

const STORED_AS = "parley-comparison";

/** Whether figures and charts are compared with the previous period, remembered in this browser. Default: on. */
export function useComparison(): readonly [on: boolean, change: (on: boolean) => void] {
  const [on, setOn] = useState(readStored);
  const change = (next: boolean): void => {
    store(next);
    setOn(next);
  };
  return [on, change];
}

function readStored(): boolean {
  try {
    return localStorage.getItem(STORED_AS) !== "off";
  } catch {
    return true;
  }
}

function store(on: boolean): void {
  try {
    localStorage.setItem(STORED_AS, on ? "on" : "off");
  } catch {
    // Storage is not available: the choice lasts until the page is loaded again.
  }
}
