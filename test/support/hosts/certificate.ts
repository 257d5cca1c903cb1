import { getCACertificates, setDefaultCACertificates } from "node:tls";

/**
 * A key and the certificate that it has signed itself, for `localhost` and `oauth2.googleapis.com`, until 2126. Nothing outside of
 * tests trusts it.
 */
export const certificate = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgp3/3hjTPvcxnrG4t
ULbz+qQBcD1FQNeaAHG91OmB4ymhRANCAASlY4yRQ6AMGgh6jAeoH/Oi65JW8aLP
8Y2ZcBcpA0I9GnaONUstYRBpGyKQ558qfE5HauQv3awZzfaD1Qq8S0YP
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBrDCCAVOgAwIBAgIUR0CQr269UmXHs5ONZ8sQoJeQpoowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNjE0NDgzM1oYDzIxMjYwNzI1
MTQ0ODMzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASlY4yRQ6AMGgh6jAeoH/Oi65JW8aLP8Y2ZcBcpA0I9GnaONUstYRBp
GyKQ558qfE5HauQv3awZzfaD1Qq8S0YPo4GAMH4wHQYDVR0OBBYEFMJdGDLNGx+I
2FCHbKaSSPgJcNfEMB8GA1UdIwQYMBaAFMJdGDLNGx+I2FCHbKaSSPgJcNfEMA8G
A1UdEwEB/wQFMAMBAf8wKwYDVR0RBCQwIoIJbG9jYWxob3N0ghVvYXV0aDIuZ29v
Z2xlYXBpcy5jb20wCgYIKoZIzj0EAwIDRwAwRAIgSvgA1LZxYsK3zis8yIWQ2wq+
vXGHRgUPcNVYycmNxLECIHo7WVTQHkm0qT5n0EInMCGqz19haEsAJ9yuQqSS7x/n
-----END CERTIFICATE-----
`,
};

/** Trusts the certificate in this process. Returns what undoes it. */
export function trustCertificate(): () => void {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, certificate.cert]);
  return () => setDefaultCACertificates(before);
}
