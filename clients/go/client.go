// Package parley is the Go client of Parley, a completion gateway: one contract in front of many models.
//
// The messages are those of [parley.dev/go/parley/v1], generated from the contract, whose comments are the reference. This
// package adds the connection, the errors, the retries, and an iterator over the pieces of an answer.
package parley

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	parleyv1 "parley.dev/go/parley/v1"
)

// Version is the version of this package and of the Parley that it was generated from.
const Version = "0.1.0"

const (
	// maxResponseBytes is the largest message that a client receives, for answers with pictures.
	maxResponseBytes = 64 << 20
	// maxRequestBytes is the largest request that Parley takes. grpc-go retries no call with a request over 256 KiB by
	// default, which excludes most requests with a picture.
	maxRequestBytes = 32 << 20
)

const requestIDKey = "x-request-id"

// serviceConfig has the timeouts and the retry policy that the contract publishes.
//
//go:embed service_config.json
var serviceConfig string

// Client calls Parley's services with one API key over one connection. It is safe for concurrent use. Errors of all its
// calls are of type [*Error].
type Client struct {
	// Completions runs completions.
	Completions *Completions
	// Embeddings makes embeddings.
	Embeddings parleyv1.EmbeddingServiceClient
	// Models tells which models the key may use.
	Models parleyv1.ModelServiceClient
	// Key tells about the client's API key.
	Key parleyv1.KeyServiceClient

	conn *grpc.ClientConn
}

// Option changes how a client connects.
type Option func(*options)

type options struct {
	transport credentials.TransportCredentials
	dial      []grpc.DialOption
}

// WithPlaintext connects without TLS: the key and all content can be read on the way. For a gateway on the same machine.
func WithPlaintext() Option {
	return func(o *options) { o.transport = insecure.NewCredentials() }
}

// WithTLS replaces the TLS configuration, such as for a CA of your own in RootCAs. The default trusts the system's CAs.
func WithTLS(config *tls.Config) Option {
	return func(o *options) { o.transport = credentials.NewTLS(config) }
}

// WithDialOptions adds options of grpc-go, such as a stats handler for tracing. They override the client's own.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

// NewClient returns a client for the gateway at address (host:port), over TLS unless options say otherwise. It connects with
// the first call; an unreachable address is that call's error.
func NewClient(address, key string, opts ...Option) (*Client, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	o := options{transport: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})}
	for _, opt := range opts {
		opt(&o)
	}
	isPlaintext := o.transport.Info().SecurityProtocol == "insecure"
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(o.transport),
		grpc.WithPerRPCCredentials(&bearer{header: "Bearer " + key, allowPlaintext: isPlaintext}),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes), grpc.MaxRetryRPCBufferSize(maxRequestBytes)),
		grpc.WithChainUnaryInterceptor(convertErrors),
		grpc.WithUserAgent("parley-go/" + Version),
	}, o.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("parley: address %q: %w", address, err)
	}
	return &Client{
		Completions: &Completions{stub: parleyv1.NewCompletionServiceClient(conn), conn: conn},
		Embeddings:  parleyv1.NewEmbeddingServiceClient(conn),
		Models:      parleyv1.NewModelServiceClient(conn),
		Key:         parleyv1.NewKeyServiceClient(conn),
		conn:        conn,
	}, nil
}

// Conn returns the client's connection, for other services of the gateway such as health and reflection. Calls on it carry
// the key.
func (c *Client) Conn() *grpc.ClientConn { return c.conn }

// Close ends the connection and the calls on it.
func (c *Client) Close() error { return c.conn.Close() }

// String names the gateway's address, not the key.
func (c *Client) String() string { return fmt.Sprintf("parley.Client(%s)", c.conn.Target()) }

// GoString is String: %#v prints no key either.
func (c *Client) GoString() string { return c.String() }

// WithRequestID returns a context whose calls have this request ID. Without one the gateway makes an ID for each call.
func WithRequestID(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, requestIDKey, id)
}

func checkAddress(address string) error {
	if address == "" {
		return errors.New("parley: the address is empty; use host:port")
	}
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return fmt.Errorf("parley: the address %q is a URL; use host:port", address)
	}
	return nil
}

// checkKey refuses what cannot be a key, without repeating it.
func checkKey(key string) error {
	if key == "" {
		return errors.New("parley: the API key is empty; use one such as sk_parley_…")
	}
	isForeign := func(r rune) bool { return r <= ' ' || r > '~' }
	if strings.ContainsFunc(key, isForeign) {
		return errors.New("parley: the API key has a space, a line break or another character that no key has")
	}
	return nil
}

// bearer adds the key to each call. Only pointers to it are stored, because fmt prints those in a struct as addresses.
type bearer struct {
	header         string
	allowPlaintext bool
}

func (b *bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": b.header}, nil
}

func (b *bearer) RequireTransportSecurity() bool { return !b.allowPlaintext }

// convertErrors makes an [*Error] of each error of a unary call.
func convertErrors(
	ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	var header, trailer metadata.MD
	opts = append(opts[:len(opts):len(opts)], grpc.Header(&header), grpc.Trailer(&trailer))
	if err := invoke(ctx, method, request, response, conn, opts...); err != nil {
		return newError(ctx, conn, err, header, trailer)
	}
	return nil
}
