//go:build clouds

package objectstore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
)

// buckets are open buckets, by scheme and name.
type buckets struct {
	mu   sync.Mutex
	open map[string]*blob.Bucket
}

// at opens the bucket of an address, and says what its key is.
func (b *buckets) at(ctx context.Context, address string) (*blob.Bucket, string, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	bucket, key, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	name := scheme + "://" + bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.open[name]; at != nil {
		return at, strings.TrimLeft(key, "/"), nil
	}
	at, err := openBucket(ctx, scheme, bucket)
	if err != nil {
		return nil, "", err
	}
	if b.open == nil {
		b.open = map[string]*blob.Bucket{}
	}
	b.open[name] = at
	return at, strings.TrimLeft(key, "/"), nil
}

func openBucket(ctx context.Context, scheme, bucket string) (*blob.Bucket, error) {
	switch scheme {
	case "s3":
		c, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, err
		}
		// Other servers than Amazon's are addressed by path, and want no checksums beyond
		// what the protocol demands.
		other := aws.ToString(c.BaseEndpoint) != "" || os.Getenv("AWS_ENDPOINT_URL_S3") != "" ||
			os.Getenv("AWS_ENDPOINT_URL") != ""
		if other {
			c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			c.Region = cmp.Or(c.Region, "us-east-1")
		}
		client := s3.NewFromConfig(c, func(o *s3.Options) {
			o.UsePathStyle = o.UsePathStyle || other || o.BaseEndpoint != nil
		})
		return s3blob.OpenBucket(ctx, client, bucket,
			&s3blob.Options{RequestChecksumCalculation: c.RequestChecksumCalculation})
	case "gs":
		if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
			return gcsblob.OpenBucket(ctx, gcp.NewAnonymousHTTPClient(gcp.DefaultTransport()), bucket, nil)
		}
		credentials, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoCredentials, err)
		}
		client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), gcp.CredentialsTokenSource(credentials))
		if err != nil {
			return nil, err
		}
		return gcsblob.OpenBucket(ctx, client, bucket, nil)
	}
	options := azureblob.NewDefaultServiceURLOptions()
	if options.AccountName == "" && os.Getenv("AZURE_STORAGE_CONNECTION_STRING") == "" && !options.IsLocalEmulator {
		return nil, fmt.Errorf("%w: neither AZURE_STORAGE_ACCOUNT nor AZURE_STORAGE_CONNECTION_STRING is set",
			errNoCredentials)
	}
	service, err := azureblob.NewServiceURL(options)
	if err != nil {
		return nil, err
	}
	client, err := azureblob.NewDefaultClient(service, azureblob.ContainerName(bucket))
	if err != nil {
		return nil, err
	}
	return azureblob.OpenBucket(ctx, client, nil)
}
