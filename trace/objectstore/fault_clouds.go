//go:build clouds

package objectstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
)

var (
	errNoCredentials = errors.New("no credentials were found")
	errChanged       = errors.New("another object took its place while it was read: begin again")
	errShort         = errors.New("the store ended the object too early")
	errStalled       = errors.New("the store did not answer in time")
)

// how to give credentials, by scheme.
var credentials = map[string]string{
	"s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run where a role is attached",
	"gs": "set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, or run where a service " +
		"account is attached",
	"az": "set AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or log in with az login, or " +
		"run where an identity is attached",
}

// fault is an error in words. It quotes codes of the store and addresses of servers, and no
// more of what the store or a library says, which may have a signature in it.
func fault(address string, err error) *Error {
	out := &Error{URL: address}
	scheme, _, _ := strings.Cut(address, ":")
	code, status, region := said(err)
	text := err.Error()
	var where *url.Error
	server := "the store"
	if errors.As(err, &where) { // without what may be a signature
		if u, _ := url.Parse(where.URL); u != nil {
			server = u.Scheme + "://" + u.Host
		}
	}
	var network net.Error
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	switch {
	case errors.Is(err, errChanged), errors.Is(err, errMissingFolder):
		out.Text = err.Error()
		if errors.Is(err, errMissingFolder) {
			out.Kind = Missing
		}
	case code == "NoSuchBucket" || code == "ContainerNotFound" || errors.Is(err, errNoBucket):
		out.Kind, out.Text = NoBucket,
			"there is no such bucket. Make it first, or look at the name, the region and the endpoint"
	case code == "NoSuchUpload": // the server forgot the parts when it restarted
		out.Kind, out.Text = Later, "the store no longer knows the upload"
	case errors.Is(err, errNoCredentials) || has("failed to retrieve credentials", "no EC2 IMDS role found",
		"DefaultAzureCredential: failed", "get credentials:", "failed to refresh cached credentials"):
		out.Kind, out.Text = Denied, "no credentials were found: "+credentials[scheme]
	case code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "ExpiredToken" ||
		code == "InvalidToken" || code == "AuthenticationFailed" || status == http.StatusUnauthorized:
		out.Kind, out.Text = Denied, fmt.Sprintf("the store refuses the credentials%s: %s", coded(code),
			credentials[scheme])
	case status == http.StatusMovedPermanently || code == "PermanentRedirect" ||
		code == "AuthorizationHeaderMalformed" || code == "IllegalLocationConstraintException":
		out.Text = "the bucket is in another region"
		if region != "" {
			out.Text += ": set AWS_REGION=" + region
		} else {
			out.Text += ", which AWS_REGION has to name"
		}
	case has("Missing Region", "A region must be set"):
		out.Text = "no region is set: set AWS_REGION to the bucket's region"
	case gcerrors.Code(err) == gcerrors.PermissionDenied || status == http.StatusForbidden:
		out.Kind, out.Text = Denied,
			fmt.Sprintf("access denied%s: the credentials were taken, and do not allow this. The role needs to read, "+
				"list and write objects of the bucket", coded(code))
	case gcerrors.Code(err) == gcerrors.NotFound || status == http.StatusNotFound:
		out.Kind, out.Text = Missing, "there is no such object"
	case errors.Is(err, errShort) || errors.Is(err, io.ErrUnexpectedEOF):
		out.Kind, out.Text = Later, "the store ended the object too early: it is cut off, or the connection was lost"
	case errors.Is(err, errStalled) || errors.Is(err, context.DeadlineExceeded):
		out.Kind, out.Text = Later, errStalled.Error()
	case status >= 500 || status == http.StatusTooManyRequests || code == "SlowDown":
		out.Kind, out.Text = Later, fmt.Sprintf("the store answers with status %d%s", status, coded(code))
	case errors.As(err, &network) ||
		has("connection refused", "connection reset", "no such host", "EOF", "broken pipe"):
		out.Kind, out.Text = Later, fmt.Sprintf("%s cannot be reached (%s): look at the endpoint and the network",
			server, innermost(err))
	case code != "":
		out.Text = "the store refuses it" + coded(code)
	case status != 0:
		out.Text = fmt.Sprintf("the store answers with status %d", status)
	default:
		out.Text = "it failed: " + innermost(err)
	}
	return out
}

func coded(code string) string {
	if code == "" {
		return ""
	}
	return " (" + code + ")"
}

// said are the error code and the HTTP status that a store answered with, and the region
// that it named.
func said(err error) (code string, status int, region string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var s3 *awshttp.ResponseError
	if errors.As(err, &s3) {
		status, region = s3.HTTPStatusCode(), s3.Response.Header.Get("X-Amz-Bucket-Region")
	}
	var azure *azcore.ResponseError
	if errors.As(err, &azure) {
		code, status = azure.ErrorCode, azure.StatusCode
	}
	var google *googleapi.Error
	if errors.As(err, &google) {
		status = google.Code
		if len(google.Errors) > 0 {
			code = google.Errors[0].Reason
		}
	}
	return code, status, region
}

// innermost is what the system says. Words of libraries may have addresses with signatures in
// them, and are left out.
func innermost(err error) string {
	var system syscall.Errno
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &system):
		return system.Error()
	case errors.As(err, &name):
		return "its name is not known"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case strings.Contains(err.Error(), "EOF"):
		return "the connection was closed"
	}
	return "a library says why, in words that may hold a secret"
}
