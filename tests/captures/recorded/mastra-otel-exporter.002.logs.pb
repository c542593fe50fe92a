
‘
$
"
service.name
observatory-deskè

@mastra/otel-exporterÌ	@($êìWARN*¯
¬No `storage` configured on Mastra â€” falling back to an in-memory store. In-memory storage is not durable: all data is lost on restart, and it is not safe for production. Configure a persistent storage adapter (e.g. @mastra/libsql, @mastra/pg, @mastra/cloudflare). See https://mastra.ai/docs/storageYÀSX\$êì