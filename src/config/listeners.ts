import { isLoopback, parseListenAddress } from "./addresses.ts";
import type { Report } from "./config-error.ts";
import type { ListenAddress, ListenerTls } from "./config.ts";
import type { FileInput } from "./schema.ts";

const LISTENERS = ["http", "grpc", "operations"] as const;

export function resolveListeners(input: FileInput, report: Report): [ListenAddress, ListenAddress, ListenAddress] {
  const taken = new Map<string, string>();
  const resolveListener = (section: (typeof LISTENERS)[number]): ListenAddress => {
    const { listen, allow_public: allowPublic } = input[section];
    const address = parseListenAddress(listen);
    if (address === undefined) {
      report([section, "listen"], 'must be host:port, such as "127.0.0.1:8080" or "[::1]:8080"');
      return { host: "", port: 0 };
    }
    if (!isLoopback(address.host) && !allowPublic) {
      const advice = `to let other machines connect, write allow_public: true beside it in the section ${section}, or set PARLEY_${section.toUpperCase()}_ALLOW_PUBLIC=true`;
      report([section, "listen"], `this address is not loopback; ${advice}`);
    }
    const listens = address.port !== 0 && !(section === "grpc" && input.http.grpc);
    const other = listens ? taken.get(listen) : undefined;
    const advice = section === "grpc" && other === "http" ? ", or write http.grpc: true to share it" : "";
    if (other !== undefined)
      report([section, "listen"], `${other}.listen is the same address; choose another port${advice}`);
    if (listens) taken.set(listen, section);
    return address;
  };
  return [resolveListener("http"), resolveListener("grpc"), resolveListener("operations")];
}

export function resolveListenerTls(
  name: (typeof LISTENERS)[number],
  input: FileInput,
  report: Report,
): ListenerTls | undefined {
  const { tls } = input[name];
  if (tls === undefined) return undefined;
  for (const key of ["client_certificates", "client_crl_file"] as const)
    if (tls[key] !== undefined && tls.client_ca_file === undefined)
      report([name, "tls", "client_ca_file"], `is required with ${key}`);
  return {
    certFile: tls.cert_file,
    keyFile: tls.key_file,
    clientCaFile: tls.client_ca_file,
    clientCrlFile: tls.client_crl_file,
    clientCertificates: tls.client_certificates ?? "required",
  };
}
