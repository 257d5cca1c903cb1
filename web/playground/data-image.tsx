import { type ComponentProps, useMemo } from "react";
import { dataUrl } from "./chat-json.ts";

interface DataImageProps extends Omit<ComponentProps<"img">, "src"> {
  readonly mediaType: string;
  readonly data: Uint8Array;
  readonly alt: string;
}

/** A picture by its bytes, which are encoded once and not with every word that arrives beside it. */
export function DataImage({ mediaType, data, alt, ...rest }: DataImageProps) {
  const url = useMemo(() => dataUrl(mediaType, data), [mediaType, data]);
  return <img {...rest} src={url} alt={alt} />;
}
