import { useEffect, useRef, useState } from "react";
import { formatCount } from "../format/number.ts";

/** Interval between announcements to screen readers, long enough to listen to each. */
const ANNOUNCE_MS = 10_000;

/** Announces the number of new requests to screen readers. `arrived` counts all since the log was opened. */
export function Announcement({ arrived }: { readonly arrived: number }) {
  const [text, setText] = useState("");
  const latest = useRef(arrived);
  useEffect(() => {
    latest.current = arrived;
  }, [arrived]);
  useEffect(() => {
    let announced = latest.current;
    const timer = setInterval(() => {
      const count = latest.current - announced;
      announced = latest.current;
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
