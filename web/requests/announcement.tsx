import { useEffect, useRef, useState } from "react";
import { formatCount } from "../format/number.ts";

/** How often those who do not see the log are told: as often as one can listen to. */
const ANNOUNCE_MS = 10_000;

/** Says how many requests have come. `arrived` is how many there were since the log was opened. */
export function Announcement({ arrived }: { readonly arrived: number }) {
  const [text, setText] = useState("");
  const latest = useRef(arrived);
  useEffect(() => {
    latest.current = arrived;
  }, [arrived]);
  useEffect(() => {
    let told = latest.current;
    const timer = setInterval(() => {
      const count = latest.current - told;
      told = latest.current;
      if (count > 0) setText(count === 1 ? "One new request." : `${formatCount(count)} new requests.`);
    }, ANNOUNCE_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <p role="status" className="sr-only">
      {text}
    </p>
  );
}
