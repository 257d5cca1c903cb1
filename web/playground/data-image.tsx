import { type ComponentProps, useMemo } from "react";
import { dataUrl } from "./formats/json.ts";

interface DataImageProps extends Omit<ComponentProps<"img">, "src"> {
  readonly mediaType: string;
  readonly data: Uint8Array;
  readonly alt: string;
}

/** Image from bytes. The data URL is memoized, because the parent renders for each chunk. */
export function DataImage({ mediaType, data, alt, ...rest }: DataImageProps) {
  const url = useMemo(() => dataUrl(mediaType, data), [mediaType, data]);
  return <img {...rest} src={url} alt={alt} />;
}
